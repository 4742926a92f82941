// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

const std::vector<std::string> kSaints{"bicycle", "Saint George, the", "dragon"};
const char* const kPairs =
    "class,beside,weight\nbicycle,\"Saint George, the\",0.05\r\ndragon,\"Saint George, the\",20\n\n";

TEST(Context, NoBicycleBesideSaintGeorge) {
  const Context context(kPairs, "pairs.csv", kSaints, 1);
  const auto scores = context.scores({{0, 0.6F}, {1, 0.95F}, {2, 0.3F}, {0, 0.2F}});
  EXPECT_LT(scores[0], 0.1F);
  EXPECT_LT(scores[3], 0.02F);
  EXPECT_GT(scores[2], 0.8F) << "a dragon is likely there";
  EXPECT_GT(scores[1], 0.75F) << "who is sure stays";
  EXPECT_GT(scores[0], scores[3]) << "order within a class stays";
}

TEST(Context, SaysNothingOfOtherPairsOrOneClassAlone) {
  const Context context(kPairs, "pairs.csv", kSaints, 1);
  EXPECT_EQ(context.scores({{0, 0.6F}, {2, 0.5F}}), (std::vector<float>{0.6F, 0.5F}));
  EXPECT_EQ(context.scores({{1, 1.0F}, {1, 0.5F}}), (std::vector<float>{1.0F, 0.5F}));
  EXPECT_EQ(Context(kPairs, "pairs.csv", kSaints, 0).scores({{0, 0.6F}, {1, 0.95F}}),
            (std::vector<float>{0.6F, 0.95F}));
  EXPECT_TRUE(context.scores({}).empty());
}

TEST(Context, NoBicycleBeforeItWasInvented) {
  const char* const table =
      "class,column,weight\nbicycle,year=..1816,0.001\ndragon,place=Delft,0.1\n"
      "dragon,year=1400..1499,5\n\"Saint George, the\",\"place=Paris, Seine\",3\n";
  const Context context(table, "columns.csv", kSaints, 1);
  EXPECT_TRUE(context.has_columns());
  EXPECT_THAT(context.columns(), testing::ElementsAre("place", "year"));
  EXPECT_FALSE(Context(kPairs, "pairs.csv", kSaints, 1).has_columns());
  const auto at = [&](int32_t label, const char* columns) {
    return context.scores({{label, 0.5F}}, base::parse_json(columns, "columns")).front();
  };
  EXPECT_NEAR(at(0, R"({"year": 1504})"), 0.001 / 1.001, 1e-6);
  EXPECT_EQ(at(0, R"({"year": 1817})"), 0.5F);
  EXPECT_NEAR(at(0, R"({"year": "1504"})"), 0.001 / 1.001, 1e-6);
  EXPECT_EQ(at(0, R"({"year": "unknown"})"), 0.5F);
  EXPECT_EQ(at(0, "{}"), 0.5F);
  EXPECT_NEAR(at(2, R"({"year": 1499, "place": "Delft"})"), 0.5 / 1.5, 1e-6) << "weights multiply";
  EXPECT_NEAR(at(1, R"({"place": "Paris, Seine"})"), 0.75, 1e-6);
  EXPECT_EQ(context.scores({{0, 0.5F}}), std::vector<float>{0.5F}) << "nothing is known of the image";
}

TEST(Context, WrongTablesAreNamed) {
  const auto complaint = [](const std::string& csv) -> std::string {
    try {
      const Context context(csv, "pairs.csv", kSaints, 1);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint("a,b,weight\nbicycle,dragn,1"), "pairs.csv:2: the class 'dragn' is none of the training data's");
  EXPECT_EQ(complaint("bicycle,dragon,0"),
            "pairs.csv:1: \"bicycle,dragon,0\" is no class,class,weight nor class,COLUMN=VALUE,weight");
  EXPECT_EQ(complaint("bicycle,dragon"),
            "pairs.csv:1: \"bicycle,dragon\" is no class,class,weight nor class,COLUMN=VALUE,weight");
  EXPECT_EQ(complaint("a,b,c\nbicycle,dragon,much"),
            "pairs.csv:2: \"bicycle,dragon,much\" is no class,class,weight nor class,COLUMN=VALUE,weight");
}

}  // namespace
}  // namespace lockstep::task
