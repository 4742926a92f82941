// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/buy_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/planning/invented_plan.h"

namespace lockstep::advice {
namespace {

using testing::HasSubstr;

BuyPage page_of(const std::string& words) {
  return read_buy_page(base::parse_json(words, "page.json"));
}

TEST(BuyClaimsTest, ReadsPricesAndStatements) {
  const BuyPage page = page_of(R"({"prices": [{"what": "shop", "price": "8500 GBP"}],
    "claims": [{"says": "s", "kind": "times_faster", "job": "j.json", "on": ["rtx3090", "rtx3080"], "value": 2}]})");
  ASSERT_EQ(page.prices.size(), 1U);
  EXPECT_DOUBLE_EQ(page.prices[0].price.amount, 8500);
  ASSERT_EQ(page.claims.size(), 1U);
  EXPECT_EQ(page.claims[0].kind, BuyClaimKind::times_faster);
  EXPECT_DOUBLE_EQ(page.claims[0].value, 2);
  EXPECT_TRUE(page_of("{}").claims.empty());
}

TEST(BuyClaimsTest, NamesThePlaceOfWhatIsWrong) {
  for (const char* wrong :
       {R"({"prices": [{"what": "shop", "price": "8500"}]})",
        R"({"claims": [{"says": "s", "kind": "faster", "job": "j", "on": ["a"]}]})",
        R"({"claims": [{"says": "s", "kind": "times_faster", "job": "j", "on": ["a"]}]})",
        R"({"claims": [{"says": "s", "kind": "does_not_fit", "job": "j", "on": ["a"], "gpus": 0}]})"}) {
    try {
      page_of(wrong);
      ADD_FAILURE() << wrong;
    } catch (const base::Error& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr("page.json:1:"));
    }
  }
}

TEST(BuyClaimsTest, HoldsStatementsAgainstThePlan) {
  const planning::Plan plan = planning::invented_plan({"h200", "t4"});
  BuyClaim claim{.says = "", .kind = BuyClaimKind::does_not_fit, .job = "", .set = {}, .on = {"h200"}};
  EXPECT_FALSE(check_buy_claim(claim, plan).holds);
  EXPECT_THAT(check_buy_claim(claim, plan).because, HasSubstr("it fits"));
  claim.kind = BuyClaimKind::times_faster;
  claim.on = {"h200", "t4"};
  claim.value = plan.options[1].trial.time->step.value / plan.options[0].trial.time->step.value;
  EXPECT_TRUE(check_buy_claim(claim, plan).holds);
  claim.value *= 2;
  EXPECT_FALSE(check_buy_claim(claim, plan).holds);
}

TEST(BuyClaimsTest, AStatementIsAboutSingleGpus) {
  const BuyClaim claim{.says = "", .kind = BuyClaimKind::does_not_fit, .job = "", .set = {}, .on = {"all"}};
  try {
    check_buy_claim(claim, planning::invented_plan({"h200"}));
    ADD_FAILURE() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
  }
}

// Pounds were taken from euros.
TEST(BuyClaimsTest, ComparesPricesOfOneCurrency) {
  const BuyPage page = page_of(R"({"prices": [{"what": "shop", "price": "8500 GBP"},
                                              {"what": "abroad", "price": "9900 EUR"}]})");
  const base::Arguments arguments;
  const auto catalogue = catalogue::load_embedded();
  const auto calibration = forecast::load_calibration();
  Advice advice;
  add_buy_page(page, Money{7485, "GBP"}, {arguments, catalogue, calibration}, advice);
  const std::string shown = to_text(advice.paper);
  EXPECT_THAT(shown, testing::ContainsRegex("shop +8,500 GBP +\\+1,015 \\(1.14 times\\)"));
  EXPECT_THAT(shown, testing::ContainsRegex("abroad +9,900 EUR +-"));
}

}  // namespace
}  // namespace lockstep::advice
