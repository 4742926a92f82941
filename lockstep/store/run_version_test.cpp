// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/run_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/store/small_run.h"
#include "lockstep/store/store.h"

namespace lockstep::store {
namespace {

using testing::HasSubstr;

TEST(RunVersionTest, KeepsAllThatIsKnownOfARun) {
  const FinishedRun run;
  base::write_file(run.path() / "plan.json", "{\"a\": 1}");
  const base::Path store = run.root() / "store";
  const Version version = add(store, "pets", RunVersion(run.path(), "", "CC0").parts());
  check(version);
  const base::Json about = base::read_json(version.about());
  EXPECT_EQ(about.at("metrics").at("top1").as_double(), 0.75);
  EXPECT_EQ(about.at("data").at("data_sha256").as_string(), "feedbeef");
  EXPECT_EQ(about.at("licence").as_string(), "CC0");
  EXPECT_EQ(about.at("weights").at("step").as_int(), 1);
  EXPECT_EQ(base::read_file(version.job()), base::read_file(run.path() / "job.json"));
  EXPECT_EQ(base::read_file(version.folder / "plan.json"), "{\"a\": 1}");
  const weights::SafetensorsFile file(version.weights());
  EXPECT_EQ(file.metadata().at("classes"), R"(["cat","dog"])");
  EXPECT_EQ(file.metadata().at("licence"), "CC0");
  EXPECT_EQ(file.metadata().at("image_size"), "16");
  ASSERT_NE(file.find("head.weight"), nullptr);
  EXPECT_THAT(base::read_file(version.card()), HasSubstr("Of these weights: CC0."));
}

TEST(RunVersionTest, TheSameRunIsTheSameVersion) {
  const FinishedRun run;
  const base::Path store = run.root() / "store";
  const Version first = add(store, "pets", RunVersion(run.path(), "", "").parts());
  EXPECT_EQ(add(store, "pets", RunVersion(run.path(), "", "").parts()).number, 1);
  EXPECT_EQ(add(store, "pets", RunVersion(run.path(), "last", "").parts()).number, 2);
}

TEST(RunVersionTest, DoesNotKeepADamagedResult) {
  const FinishedRun run;
  std::string bytes = base::read_file(run.path() / "weights.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  base::write_file(run.path() / "weights.safetensors", bytes);
  try {
    const RunVersion version(run.path(), "last", "");
    ADD_FAILURE() << "took damaged weights";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.what(), HasSubstr("weights.safetensors is damaged"));
  }
}

}  // namespace
}  // namespace lockstep::store
