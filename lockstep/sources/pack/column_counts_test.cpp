// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/column_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using testing::HasSubstr;
using testing::Not;

base::Json columns(const std::string& text) {
  return base::parse_json(text, "columns");
}

TEST(ColumnCountsTest, AWeightIsWhatWasCountedOverWhatChanceExpects) {
  ColumnCounts counts, other;
  for (int i = 0; i < 6; ++i) counts.add(columns(R"({"place": "Delft", "year": 1650})"), {1, 0});
  for (int i = 0; i < 4; ++i) other.add(columns(R"({"place": "Paris, Seine", "year": 1890})"), {0, 2});
  counts.add(other);
  EXPECT_EQ(ColumnCounts::from_json(counts.to_json()), counts);
  const std::string csv = counts.csv({"saint", "bicycle"});
  EXPECT_THAT(csv, HasSubstr("class,column,weight\n"));
  EXPECT_THAT(csv, HasSubstr("saint,place=Delft,1.5217\n"));               // (6 + 1) / (6 * 6 / 10 + 1)
  EXPECT_THAT(csv, HasSubstr("bicycle,year=1650,0.2941\n"));               // (0 + 1) / (4 * 6 / 10 + 1)
  EXPECT_THAT(csv, HasSubstr("bicycle,\"place=Paris, Seine\",1.9231\n"));  // (4 + 1) / (4 * 4 / 10 + 1)
}

TEST(ColumnCountsTest, ManyNumbersAreTakenByTheHundred) {
  ColumnCounts counts;
  for (int year = 1480; year < 1520; ++year) counts.add(columns(base::text(R"({"year": )", year, "}")), {1});
  const std::string csv = counts.csv({"saint"});
  EXPECT_THAT(csv, HasSubstr("saint,year=1400..1499,1.0000\n"));
  EXPECT_THAT(csv, HasSubstr("saint,year=1500..1599,1.0000\n"));
  EXPECT_THAT(csv, Not(HasSubstr("1485")));
}

}  // namespace
}  // namespace lockstep::sources
