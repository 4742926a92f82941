// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

// As Optuna 5.0 wrote it.
constexpr const char* kOptunas =
    R"({"op_code":0,"worker_id":"w","study_name":"s","directions":[1]}
{"op_code":4,"worker_id":"w","study_id":0,"datetime_start":"2026-11-16T12:00:00.000000+00:00"}
{"op_code":5,"worker_id":"w","trial_id":0,"param_name":"x","param_value_internal":0.25,"distribution":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}"}
{"op_code":7,"worker_id":"w","trial_id":0,"step":3,"intermediate_value":NaN}
{"op_code":6,"worker_id":"w","trial_id":0,"state":1,"values":[1.5],"datetime_complete":"2026-11-16T12:01:00.000000+00:00"}
)";

std::string log_complaint(const base::Path& path) {
  try {
    StudyFile(path, "s", "me");
  } catch (const base::Error& error) {
    return base::text(error.what(), " | ", error.fix());
  }
  return "";
}

class StudyFileTest : public testing::Test {
 protected:
  base::TemporaryFolder folder_;
  base::Path path_ = folder_.path() / "study.log";
};

TEST_F(StudyFileTest, ReadsWhatOptunaWrote) {
  base::write_file(path_, kOptunas);
  const StudyFile file(path_, "s", "me");
  ASSERT_EQ(file.trials().all().size(), 1U);
  const Trial& trial = file.trials().all()[0];
  EXPECT_EQ(trial.state, TrialState::complete);
  EXPECT_EQ(trial.objective, 1.5);
  EXPECT_EQ(trial.values.at("x"), 0.25);
  EXPECT_TRUE(std::isnan(trial.intermediate.at(3)));
  EXPECT_EQ(unix_time(trial.complete) - unix_time(trial.start), 60);
  EXPECT_EQ(iso_time(unix_time(trial.start)), "2026-11-16T12:00:00.000000+00:00");
}

TEST_F(StudyFileTest, CutsATornLastLineOffBeforeItAppends) {
  base::write_file(path_, std::string(kOptunas) + R"({"op_code":4,"worker_id":"dead","stu)");
  StudyFile file(path_, "s", "me");
  EXPECT_EQ(file.trials().all().size(), 1U);
  file.update([](StudyFile::Update& update) { update.add(4, R"("study_id":0,"datetime_start":null)"); });
  EXPECT_EQ(file.trials().all().size(), 2U);
  const StudyFile again(path_, "s", "me");
  EXPECT_EQ(again.trials().all().size(), 2U);
  EXPECT_EQ(base::read_file(path_).find("dead"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path_.string() + ".lock")));
}

TEST_F(StudyFileTest, NamesTheLineThatIsNoRecordAndTheNewerOptuna) {
  base::write_file(path_, std::string(kOptunas) + "nonsense\n");
  EXPECT_NE(log_complaint(path_).find("study.log:6: no record"), std::string::npos) << log_complaint(path_);
  base::write_file(path_, std::string(kOptunas) + R"({"op_code":11,"worker_id":"w","study_id":0})" + "\n");
  EXPECT_NE(log_complaint(path_).find("a newer Optuna"), std::string::npos) << log_complaint(path_);
}

TEST_F(StudyFileTest, WritersAtOnceLoseAndDoubleNothing) {
  StudyFile(path_, "s", "first").make_study(false);
  constexpr int kWriters = 4;
  constexpr int kTrials = 20;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([&, i] {
        StudyFile file(path_, "s", base::text("w", i));
        for (int n = 0; n < kTrials; ++n) {
          file.update([&](StudyFile::Update& update) {
            const int64_t id = update.trials().next_trial_id();
            update.add(4, R"("study_id":0,"datetime_start":null)");
            update.add(6, base::text("\"trial_id\":", id, ",\"state\":1,\"values\":[", id,
                                     "],\"datetime_complete\":\"2026-11-16T12:01:00+00:00\""));
          });
        }
      });
    }
  }
  const StudyFile file(path_, "s", "reader");
  ASSERT_EQ(file.trials().all().size(), static_cast<size_t>(kWriters * kTrials));
  for (const auto& trial : file.trials().all()) {
    EXPECT_EQ(trial.objective, static_cast<double>(trial.number));
    EXPECT_EQ(trial.state, TrialState::complete);
  }
}

TEST_F(StudyFileTest, BreaksTheLockOfADeadProcess) {
  base::write_file(path_, kOptunas);
  std::filesystem::create_symlink(std::filesystem::absolute(path_), path_.string() + ".lock");
  const double before = base::steady_seconds();
  const LinkLock lock(path_, {}, 0.1);
  lock.ensure_held();
  EXPECT_GE(base::steady_seconds() - before, 0.1);
}

TEST_F(StudyFileTest, DoesNotWaitForTheLockOfADeadWorker) {
  base::write_file(path_, kOptunas);
  std::filesystem::create_directories(worker_folder(path_, "dead-1"));
  std::filesystem::create_symlink(worker_folder(path_, "dead-1") / "../.." / path_.filename(),
                                  path_.string() + ".lock");
  EXPECT_TRUE(std::filesystem::exists(path_.string() + ".lock"));  // as Optuna's waiters look at it
  const double before = base::steady_seconds();
  LinkLock(path_, worker_folder(path_, "me")).ensure_held();
  EXPECT_LT(base::steady_seconds() - before, LinkLock::kGraceSeconds / 2);
}

TEST_F(StudyFileTest, TheFirstOfTwoStudiesOfOneNameCounts) {
  StudyFile a(path_, "s", "a");
  StudyFile b(path_, "s", "b");
  EXPECT_TRUE(a.make_study(true));
  EXPECT_FALSE(b.make_study(false));
  EXPECT_TRUE(b.trials().maximize());
}

}  // namespace
}  // namespace lockstep::tune
