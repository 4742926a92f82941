// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/workstation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::advice {
namespace {

const std::vector<std::string> kDeepsim{"rtx3090*2", "threadripper-3970x", "ram-128",    "ssd-2tb", "hdd-4tb",
                                        "case",      "psu-1200",           "motherboard"};

TEST(PartListTest, AddsUpTheWorkstationOfTheDeepsimPage) {
  const auto catalogue = catalogue::load_embedded();
  const PartList part_list(price_parts(catalogue.parts, {}), catalogue);
  const Build build = part_list.listed(kDeepsim);
  EXPECT_DOUBLE_EQ(build.price, 7485);
  EXPECT_DOUBLE_EQ(build.watts, 2 * 350 + 280 + 100);
  EXPECT_EQ(build.slots, 6);
  EXPECT_EQ(build.name(), "2 x rtx3090, threadripper-3970x");
}

TEST(PartListTest, BuildsNothingThatNoPowerSupplyFeeds) {
  const auto catalogue = catalogue::load_embedded();
  const PartList part_list(price_parts(catalogue.parts, {}), catalogue, "2021");
  const auto builds = part_list.builds({});
  ASSERT_FALSE(builds.empty());
  for (const auto& build : builds) {
    EXPECT_LE(build.watts * part_list.rules().psu_margin, 1200) << build.name();
    EXPECT_LE(build.slots, part_list.rules().slots) << build.name();
    EXPECT_EQ(build.rest.size(), 6U);
  }
  const auto has = [&](const std::string& name) {
    return std::any_of(builds.begin(), builds.end(), [&](const Build& build) { return build.name() == name; });
  };
  EXPECT_TRUE(has("2 x rtx3090, threadripper-3970x"));
  EXPECT_FALSE(has("3 x rtx3090, i7-8700"));
  EXPECT_TRUE(has("4 x quadro-p2000, i7-8700"));
}

TEST(PartListTest, BuildsOfCurrentPartsAndOfAListWhereItIsNamed) {
  const auto catalogue = catalogue::load_embedded();
  const PartList current(price_parts(catalogue.parts, {}), catalogue);
  const auto builds = current.builds({});
  ASSERT_FALSE(builds.empty());
  for (const auto& build : builds) {
    EXPECT_FALSE(build.gpu->part.list) << build.name();
    EXPECT_FALSE(build.cpu->part.list) << build.name();
  }
  EXPECT_EQ(current.listed(kDeepsim).price, 7485) << "a list of one's own may have any part";
  EXPECT_THROW(PartList(price_parts(catalogue.parts, {}), catalogue, "1999"), base::Error);
}

TEST(PartListTest, BuildsOfPartsThatOnlyTheUserKnows) {
  const auto catalogue = catalogue::load_embedded();
  const auto own = base::parse_csv("part,price,kind,power_w\nbig-psu,300,psu,2000\n", "my.csv");
  const PartList parts(price_parts(catalogue.parts, {.currency = "GBP", .gbp = {}, .own = own}), catalogue);
  const auto builds = parts.builds({});
  EXPECT_TRUE(std::any_of(builds.begin(), builds.end(), [](const Build& build) { return build.watts > 1100; }));
  const auto misspelt = base::parse_csv("part,price,kind,power_w\nbig-psu,300,psus,2000\n", "my.csv");
  const auto priced = price_parts(catalogue.parts, {.currency = "GBP", .gbp = {}, .own = misspelt});
  EXPECT_THROW(PartList(priced, catalogue), base::Error) << "it would never be offered";
}

TEST(PartListTest, SaysWhichKindHasNoPrice) {
  const auto catalogue = catalogue::load_embedded();
  auto parts = price_parts(catalogue.parts, {});
  std::erase_if(parts, [](const PricedPart& part) { return part.part.kind == "psu"; });
  EXPECT_THROW(PartList(parts, catalogue), base::Error);
}

TEST(PartListTest, RefusesListsWithoutAProcessorOrWithAnUnknownPart) {
  const auto catalogue = catalogue::load_embedded();
  const PartList part_list(price_parts(catalogue.parts, {}), catalogue);
  EXPECT_THROW(part_list.listed({"rtx3090*2"}), base::Error);
  EXPECT_THROW(part_list.listed({"rtx3090*two", "i7-8700"}), base::Error);
  EXPECT_THROW(part_list.listed({"rtx3091", "i7-8700"}), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
