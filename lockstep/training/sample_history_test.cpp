// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/sample_history.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::training {
namespace {

TEST(SampleHistoryTest, KeepsOneLineForEachStepAcrossSessions) {
  const base::TemporaryFolder folder;
  spec::Model what;
  what.name = "mlp";
  what.classes = 2;
  const auto network = model::make_network(what, 8, 1, at::kCPU);
  loader::Batch batch;
  batch.sample_ids = {4, 2};
  for (int session = 0; session < 2; ++session) {
    SampleHistory history(folder.path(), 3, 4);
    history.begin(base::text("s", session), session);
    history.step(session + 1, batch, 0.5, network, nullptr);
  }
  std::vector<std::string> lines;
  for (const auto& line : base::split(base::read_file(folder.path() / "history/rank-3.jsonl"), '\n')) {
    if (!line.empty()) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], R"({"session":"s0","begin":0,"ranks":4})");
  EXPECT_TRUE(lines[3].starts_with(R"({"step":2,"ranks":4,"epoch":0,"loss":0.5,"samples":[4,2],"weights":)"))
      << lines[3];
}

}  // namespace
}  // namespace lockstep::training
