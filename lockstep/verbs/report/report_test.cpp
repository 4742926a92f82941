// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"

namespace lockstep::verbs::report {
namespace {

using base::Json;
using testing::HasSubstr;
using testing::Not;

Json fields(const std::string& json) {
  return base::parse_json(json, "test");
}

TEST(ReportTest, AnEmptyRunStillGivesAPage) {
  const base::TemporaryFolder temporary;
  const Json data = gather_report({temporary.path()});
  EXPECT_EQ(data.at("status").as_string(), "not started");
  EXPECT_FALSE(data.contains("evaluation"));
  EXPECT_THAT(render_report(data), HasSubstr("<!DOCTYPE html>"));
}

TEST(ReportTest, ThinsLongCurvesButKeepsTheirMeans) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  std::string lines;
  for (int step = 1; step <= 6000; ++step) {
    lines += base::text(R"({"v":1,"t":1,"event":"step","step":)", step, R"(,"loss":)", step % 2 == 0 ? 1 : 3,
                        R"(,"samples":8,"seconds":0.5})", "\n");
  }
  base::write_file(paths.journal(), lines);
  const Json data = gather_report(paths);
  ASSERT_EQ(data.at("steps").size(), 600U);
  EXPECT_DOUBLE_EQ(data.at("steps").items()[17].at("loss").as_double(), 2);
  EXPECT_DOUBLE_EQ(data.at("steps").items()[599].at("step").as_double(), 6000);
  EXPECT_DOUBLE_EQ(data.at("samples_per_second").as_double(), 16);
}

TEST(ReportTest, FiguresAreOfTheWeightsThatWereAskedFor) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  base::write_file(paths.evaluation(), R"({"top1": 0.5, "which": "best, step 12, top-1 50.00 %"})");
  for (const char* same : {"", "best", "12"}) EXPECT_NO_THROW(gather_report(paths, same)) << same;
  EXPECT_EQ(gather_report(paths, "best").at("weights").as_string(), "best");
  for (const char* other : {"last", "1", "2"}) {
    try {
      gather_report(paths, other);
      FAIL() << other;
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("eval.json is of other weights: best, step 12"));
      EXPECT_THAT(error.fix(), HasSubstr(base::text("--weights ", other)));
    }
  }
}

TEST(ReportTest, SplitsTheTime) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  run::Journal journal(paths.journal());
  journal.append("step", fields(R"({"step":1,"seconds":10,"data":1,"compute":6,"communication":2,"save":0.5})"));
  journal.append("save", fields(R"({"step":1,"seconds":3})"));  // beside the steps
  journal.append("evaluate", fields(R"({"step":1,"seconds":4})"));
  journal.append("features", fields(R"({"step":0,"samples":9,"seconds":5})"));
  const Json time = gather_report(paths).at("time");
  EXPECT_EQ(time, fields(R"({"data wait":1.0,"compute":6.0,"communication":2.0,"save":0.5,"evaluation":4.0,
                       "cached features":5.0,"other":0.5})"));
}

TEST(ReportTest, TellsTheHistoryOfRestarts) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  run::Journal journal(paths.journal());
  journal.append("start", fields(R"({"host":"a","ranks":2})"));
  journal.append("step", fields(R"({"step":7})"));
  journal.append("restart", fields(R"({"step":6,"what":"rank 1 on a was killed by SIGKILL"})"));
  journal.append("resume", fields(R"({"host":"b","ranks":4,"step":5})"));
  journal.append("stop", fields(R"({"step":9,"reason":"SIGTERM"})"));
  const Json data = gather_report(paths);
  ASSERT_EQ(data.at("sessions").size(), 2U);
  const auto& sessions = data.at("sessions").items();
  EXPECT_EQ(sessions[0].at("outcome").as_string(), "broke off: rank 1 on a was killed by SIGKILL");
  EXPECT_EQ(sessions[0].at("to_step").as_int(), 7);
  EXPECT_EQ(sessions[1].at("outcome").as_string(), "stopped: SIGTERM");
  EXPECT_EQ(sessions[1].at("from_step").as_int(), 5);
  EXPECT_EQ(data.at("status").as_string(), "stopped");
  EXPECT_EQ(data.at("steps").size(), 0U);  // step 7 was undone by the resume at 5
}

TEST(ReportTest, SeveralRunsStandOnOnePageWithWhatDiffers) {
  const base::TemporaryFolder temporary;
  std::vector<run::RunPaths> runs;
  for (const char* rate : {"0.1", "0.2"}) {
    runs.push_back({temporary.path() / rate});
    base::make_folders(runs.back().root);
    base::write_file(runs.back().job(), base::text(R"({"training":{"optimizer":{"lr":)", rate, "}}}"));
    run::Journal journal(runs.back().journal());
    journal.append("start", fields(R"({"name":"</script>","ranks":2})"));
    journal.append("step", fields(R"({"step":1,"loss":1,"samples":8,"seconds":2,"compute":1,"data":1})"));
  }
  const Json data = gather_comparison(runs);
  ASSERT_EQ(data.at("runs").size(), 2U);
  EXPECT_EQ(data.at("differences").at("settings").items()[0].at("name").as_string(), "training.optimizer.lr");
  EXPECT_EQ(data.at("runs").items()[1].at("slowness").at("findings").items()[0].at("part").as_string(), "data");
  const std::string page = render_comparison(data);
  EXPECT_THAT(page, HasSubstr("function drawTables"));
  EXPECT_THAT(page, Not(HasSubstr("\"</script>")));
}

TEST(ReportTest, HostileTextNeverBecomesMarkup) {
  Json data = Json::object();
  data["name"] = "</title><script>alert(1)</script>@[data]";
  data["path"] = "</script><script>alert(2)</script>";
  const std::string page = render_report(data);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e\\u003cscript\\u003ealert(2)"));
}

TEST(ReportTest, CarriesThumbnailsOfItsOwnFolderOnly) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  base::make_folders(paths.pictures());
  base::write_file(paths.pictures() / "a.jpg", "\xff\xd8\xff");
  base::write_file(paths.pictures() / "secret", "not a picture");
  base::write_file(paths.root / "outside.jpg", "\xff\xd8\xff");
  base::write_file(paths.evaluation(), R"({"worst": [{"picture": "eval/a.jpg"}, {"picture": "../outside.jpg"},
                                                     {"picture": "eval/secret"}, {}]})");
  const auto worst = gather_report(paths).at("evaluation").at("worst").items();
  EXPECT_EQ(worst[0].at("picture").as_string(), "data:image/jpeg;base64,/9j/");
  EXPECT_EQ(worst[1].at("picture").as_string(), "../outside.jpg");  // the page shows a blank for it
  EXPECT_EQ(worst[2].at("picture").as_string(), "eval/secret");
}

TEST(ReportTest, LeavesOutAHeatMapThatNoScreenCanShow) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  Json evaluation = Json::object();
  evaluation["classes"] = Json::array(std::vector<Json>(200, Json::object()));
  evaluation["confusion"] = Json::array();
  base::write_json(paths.evaluation(), evaluation);
  EXPECT_FALSE(gather_report(paths).at("evaluation").contains("confusion"));
}

}  // namespace
}  // namespace lockstep::verbs::report
