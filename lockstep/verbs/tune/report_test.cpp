// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/tune/report.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::verbs::tune {
namespace {

TEST(TuneReportTest, ShowsTrialsAndNoMarkupOfTheirs) {
  const auto study = spec::parse_study(base::parse_json(
      R"({"name": "</script>", "space": {"x": {"range": [0, 2]}, "o": {"choice": ["a", "b"]}}})", "s"));
  const auto space = lockstep::tune::make_space(study, nullptr);
  lockstep::tune::Trials trials("</script>");
  for (
      const char* line :
      {R"({"op_code":0,"worker_id":"w","study_name":"</script>","directions":[2]})",
       R"({"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null,"state":1,"value":3.5,"params":{"x":1.0,"o":1},"distributions":{"x":"{\"name\":\"FloatDistribution\",\"attributes\":{\"low\":0.0,\"high\":2.0,\"log\":false,\"step\":null}}","o":"{\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":[\"a\",\"b\"]}}"},"user_attrs":{"node_hours":0.5},"system_attrs":{},"intermediate_values":{"1":1.0,"2":NaN}})",
       R"({"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null,"state":2,"system_attrs":{"constraints:memory":1.0}})",
       R"({"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null,"state":0,"system_attrs":{"lockstep:paused":true}})",
       R"({"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null,"state":2,"value":9.5})"}) {
    trials.apply(line, "test");
  }
  const base::Json data = gather_study(study, space, trials);
  EXPECT_EQ(data.at("best").as_int(), 0);
  EXPECT_EQ(data.at("trials").items()[0].at("units").items()[0].as_double(), 0.5);
  EXPECT_EQ(data.at("trials").items()[0].at("curve").size(), 1U);
  EXPECT_EQ(data.at("trials").items()[1].at("state").as_string(), "infeasible");
  EXPECT_EQ(data.at("trials").items()[2].at("state").as_string(), "paused");
  EXPECT_TRUE(data.at("trials").items()[3].at("value").is_null());  // of complete trials alone
  EXPECT_EQ(data.at("next_node_hours").as_double(), 0.5);
  const std::string page = render_study(data);
  EXPECT_EQ(page.find("@["), std::string::npos);
  EXPECT_EQ(page.find("\"</script>\""), std::string::npos);
}

TEST(TuneReportTest, CountsTheTrialsThatItDoesNotDraw) {
  const auto study = spec::parse_study(base::parse_json(R"({"name": "s", "space": {"x": {"range": [0, 2]}}})", "s"));
  lockstep::tune::Trials trials("s");
  trials.apply(R"({"op_code":0,"worker_id":"w","study_name":"s","directions":[1]})", "test");
  for (int i = 0; i < 2500; ++i) {  // the 101st is the best, every fifth was pruned
    trials.apply(base::text(R"({"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null,"state":)",
                            i % 5 == 4 ? 2 : 1, R"(,"value":)", i == 100 ? 1 : 2 + i,
                            R"(,"params":{},"distributions":{},"user_attrs":{"node_hours":0.5}})"),
                 "test");
  }
  const base::Json data = gather_study(study, lockstep::tune::make_space(study, nullptr), trials);
  EXPECT_EQ(data.at("counts").at("complete").as_int(), 2000);
  EXPECT_EQ(data.at("counts").at("pruned").as_int(), 500);
  EXPECT_EQ(data.at("trials").size(), 2001U);  // the newest, and the best
  EXPECT_EQ(data.at("trials").items()[0].at("number").as_int(), 100);
  EXPECT_EQ(data.at("before").at("trials").as_int(), 500);
  EXPECT_EQ(data.at("before").at("node_hours").as_double(), 250);
  EXPECT_EQ(data.at("before").at("best").as_double(), 1);
  EXPECT_EQ(data.at("node_hours").as_double(), 1250);
}

TEST(TuneReportTest, NamesRegionsVolumesAndCentres) {
  const auto study = spec::parse_study(base::parse_json(R"({"space": {"x": {"range": [0, 2]}}})", "s"));
  lockstep::tune::Partitioned found;
  found.uniform = 6000;
  found.confidence = 0.99;
  found.evaluations = 23000;
  found.regions = {{"calm", 0.75, 0.7, 0.8, 0.6, {0.25}, {0.1}, 100}};
  const base::Json data = gather_partition(study, lockstep::tune::make_space(study, nullptr), found);
  const std::string words = partition_text(data);
  EXPECT_NE(words.find("75.000 %"), std::string::npos) << words;
  EXPECT_NE(words.find("0.5000"), std::string::npos) << words;
  EXPECT_NE(words.find("would have been found with 95 %"), std::string::npos) << words;
  EXPECT_EQ(render_partition(data).find("@["), std::string::npos);
}

}  // namespace
}  // namespace lockstep::verbs::tune
