// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/partition_run.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"

namespace lockstep::tune {
namespace {

// A program that stays.
const std::vector<std::string> kStays{"sh", "-c",
                                      "while read a b; do case $a in 0.[0-4]*) echo low;; *) echo high;; esac; done"};

class PartitionRunTest : public testing::Test {
 protected:
  PartitionOptions options(const std::vector<std::string>& program, const std::string& name = "p") const {
    PartitionOptions made;
    made.study = spec::parse_study(base::parse_json(
        R"({"space": {"a": {"range": [0, 1]}, "b": {"range": [0, 1]}}, "time_limit": "60 s",
            "partition": {"starts": 32, "chains": 2, "points": 200}})",
        "study.json"));
    made.folder = folder_.path() / name;
    made.program = program;
    return made;
  }
  static std::vector<double> volumes(const PartitionResult& result) {
    std::vector<double> all;
    for (const auto& region : result.partitioned->regions) all.push_back(region.volume);
    return all;
  }
  base::TemporaryFolder folder_;
};

TEST_F(PartitionRunTest, StoppedAndGoneOnWithItGivesTheSame) {
  auto whole = options(kStays);
  whole.workers = 2;
  const auto undisturbed = run_partition(whole);
  ASSERT_TRUE(undisturbed.partitioned);
  auto cut = options(kStays, "cut");
  int64_t asks = 0;
  int64_t sessions = 0;
  cut.stop = [&] { return ++asks % 300 == 0 ? std::string("SIGTERM") : std::string(); };
  PartitionResult last;
  do {
    last = run_partition(cut);
    ++sessions;
    // What a kill in the middle of a line leaves.
    base::FileWriter(cut.folder / "points.jsonl", base::FileWriter::Mode::append).write("{\"i\":7,\"x");
  } while (!last.partitioned && sessions < 100);
  ASSERT_TRUE(last.partitioned);
  EXPECT_GT(sessions, 1);
  EXPECT_EQ(volumes(last), volumes(undisturbed));
  EXPECT_EQ(last.partitioned->regions.size(), 2U);
}

TEST_F(PartitionRunTest, SaysWhatIsWrongWithAProgram) {
  // Only what hangs meets its limit: a shell may take long to start.
  const auto refusal = [&](const std::vector<std::string>& program, const std::string& name, double limit = 60) {
    auto asked = options(program, name);
    asked.study.time_limit = limit;
    try {
      run_partition(asked);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({"sh", "-c", "echo broken >&2; exit 3", "{a}"}, "crash").find("exit code 3: broken"),
            std::string::npos);
  EXPECT_NE(refusal({"sh", "-c", "exit 0", "{a}"}, "silent").find("printed no label"), std::string::npos);
  EXPECT_NE(refusal({"sleep", "100", "{a}"}, "hang", 0.05).find("took more than 50 ms"), std::string::npos);
  EXPECT_NE(refusal({"sh", "-c", "read x; exit 4"}, "dies").find("exit code 4"), std::string::npos);
  EXPECT_NE(refusal({"/no/such/program", "{a}"}, "absent").find("exit code 127"), std::string::npos);
}

TEST_F(PartitionRunTest, RefusesAFolderOfAnotherProgram) {
  ASSERT_TRUE(run_partition(options(kStays)).partitioned);
  auto other = options(kStays);
  other.study.seed = 2;
  EXPECT_THROW(run_partition(other), base::Error);
}

TEST_F(PartitionRunTest, LeavesTheFolderOfAnotherProcessAlone) {
  auto asked = options(kStays);
  base::make_folders(asked.folder);
  const std::string points = "{\"v\":1}\n{\"i\":3,\"x";  // as the other one is in the middle of a line
  base::write_file(asked.folder / "points.jsonl", points);
  {
    const run::RunFolder held(asked.folder);
    try {
      run_partition(asked);
      FAIL();
    } catch (const base::Error& error) {
      EXPECT_NE(std::string(error.what()).find("partitions it since"), std::string::npos) << error.what();
      EXPECT_EQ(error.exit_code(), 2);
    }
    EXPECT_EQ(base::read_file(asked.folder / "points.jsonl"), points);
  }
  std::filesystem::remove(asked.folder / "points.jsonl");
  EXPECT_TRUE(run_partition(asked).partitioned);
}

TEST_F(PartitionRunTest, TellsTheChainHowManyPointsThereAre) {
  const auto result = run_partition(options(kStays));
  const auto events = run::read_journal(folder_.path() / "p/journal.jsonl").effective();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().string_or("event", ""), "save");
  EXPECT_EQ(events.back().int_or("step", 0), result.evaluated);
}

TEST_F(PartitionRunTest, TimesAProgram) {
  const ProgramCost cost = measure_program(options({"sh", "-c", "sleep 0.01; echo x", "{a}"}), 3);
  EXPECT_GE(cost.seconds, 0.01);
  EXPECT_EQ(cost.labels, 1);
}

}  // namespace
}  // namespace lockstep::tune
