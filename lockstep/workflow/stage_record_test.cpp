// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/stage_record.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::workflow {
namespace {

TEST(StageRecordTest, GivesBackWhatWasWritten) {
  const base::TemporaryFolder folder;
  const StatePaths paths{folder.path()};
  EXPECT_FALSE(read_record(paths, "a"));
  EXPECT_FALSE(read_attempt(paths, "a"));
  base::make_folders(paths.stage("a"));
  Record record;
  record.basis = {{"command", "x"}, {"out"}, {{"in", "1"}}, {{"script.py", "2"}}};
  record.outputs = {{"out", "3"}};
  record.began = 1.5;
  record.ended = 4;
  record.seconds = 2.25;
  record.attempts = 2;
  record.host = "n1";
  record.version = "0";
  record.job = "17";
  write_record(paths, "a", record);
  EXPECT_EQ(*read_record(paths, "a"), record);
  Attempt attempt{"k", "t", "n1", 1, 2, 3, 4, {"out.partial"}, "exit code 1"};
  write_attempt(paths, "a", attempt);
  EXPECT_EQ(*read_attempt(paths, "a"), attempt);
}

TEST(StageRecordTest, TheKeyIsOfEverythingInTheBasis) {
  const Basis basis{{"command", "x"}, {"out"}, {{"in", "1"}}, {}};
  Basis other = basis;
  other.inputs["in"] = "2";
  EXPECT_EQ(basis.key(), Basis(basis).key());
  EXPECT_NE(basis.key(), other.key());
  other = basis;
  other.files["s"] = "1";
  EXPECT_NE(basis.key(), other.key());
}

TEST(StageRecordTest, RefusesTheStateOfAnotherVersion) {
  const base::TemporaryFolder folder;
  const StatePaths paths{folder.path()};
  base::make_folders(paths.stage("a"));
  base::write_file(paths.record("a"), "{\"v\": 99}");
  EXPECT_THROW(read_record(paths, "a"), base::Error);
}

}  // namespace
}  // namespace lockstep::workflow
