// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/run_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/store/small_run.h"
#include "lockstep/store/store.h"
#include "lockstep/trust/drawn_rows.h"
#include "lockstep/weights/load_job.h"

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

// The terms of weights, as those who predict with them have them.
results::Terms terms_of(const TrainedWeights& source) {
  const spec::Job job = weights::load_job_for(source.weights, source.job).job;
  return results::terms_of(job, source.weights, class_names(source, job), 0);
}

TEST(RunVersionTest, TakesTheCalibrationOfItsWeightsAlong) {
  const FinishedRun run;
  const base::Path store = run.root() / "store";
  const Version plain = add(store, "pets", RunVersion(run.path(), "", "").parts());
  EXPECT_THAT(base::read_file(plain.card()), HasSubstr("not calibrated"));
  trust::Calibration calibration = trust::calibrate(trust::drawn_rows(400, 2, 3, 5));
  calibration.terms = terms_of(find_weights(run.path()));
  trust::write_calibration(run.path(), calibration);

  const Version version = add(store, "pets", RunVersion(run.path(), "", "").parts());
  EXPECT_EQ(version.number, 2);  // what was found out later is another version
  EXPECT_EQ(add(store, "pets", RunVersion(run.path(), "", "").parts()).number, 2);
  check(version);
  const TrainedWeights source = find_weights(store / "pets:2");
  const auto found = trust::read_calibration(source.trust, terms_of(source));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->temperature, calibration.temperature);
  EXPECT_EQ(found->lac, calibration.lac);
  EXPECT_NE(found->terms.weights_sha256, calibration.terms.weights_sha256);  // the file has other metadata
  const base::Json about = base::read_json(version.about());
  EXPECT_EQ(about.at("calibration").at("temperature").as_double(), calibration.temperature);
  EXPECT_THAT(base::read_file(version.card()), HasSubstr("Confidences are calibrated: temperature "));

  const RunVersion last(run.path(), "last", "");  // other weights than those that were calibrated
  ASSERT_EQ(last.source().notes.size(), 1U);
  EXPECT_THAT(last.source().notes[0], HasSubstr("trust.json: the weights were those of sha256"));
  EXPECT_TRUE(last.about().at("calibration").is_null());
  EXPECT_FALSE(base::is_there(trust::calibration_file(add(store, "pets", last.parts()).folder)));
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
