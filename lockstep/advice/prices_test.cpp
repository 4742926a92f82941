// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/prices.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::advice {
namespace {

catalogue::Part part_of(const std::string& id, const std::string& kind, catalogue::Number price_gbp) {
  catalogue::Part part;
  part.id = id;
  part.kind = kind;
  part.price_gbp = price_gbp;
  return part;
}
const catalogue::Part kCard = part_of("card", "gpu", 1000);
const catalogue::Part kBoard = part_of("board", "motherboard", {});

PriceRules with_own(const std::string& lines) {
  return {.currency = "GBP", .gbp = {}, .own = base::parse_csv(lines, "my.csv")};
}

TEST(ParseMoneyTest, ReadsAmountsAndRefusesWhatHasNoKnownCurrency) {
  EXPECT_DOUBLE_EQ(parse_money("9800GBP").amount, 9800);
  EXPECT_DOUBLE_EQ(parse_money("9.8k GBP").amount, 9800);
  EXPECT_EQ(parse_money("9,800 EUR").currency, "EUR");
  for (const char* wrong : {"9800", "GBP", "9800XYZ", "0GBP", "-5GBP", ""}) {
    EXPECT_THROW(parse_money(wrong), base::Error) << wrong;
  }
}

TEST(PricePartsTest, PutsTheUsersPriceWithVatBeforeTheCatalogues) {
  const auto priced = price_parts({kCard, kBoard}, with_own("part,price,vat\nboard,100,20%\ncard,500,\n"));
  ASSERT_EQ(priced.size(), 2U);
  EXPECT_DOUBLE_EQ(priced[0].price, 500);
  EXPECT_DOUBLE_EQ(priced[1].price, 120);
  EXPECT_EQ(priced[1].source, "my.csv, with 20% VAT");
}

TEST(PricePartsTest, LeavesOutWhatHasNoPrice) {
  EXPECT_EQ(price_parts({kCard, kBoard}, {}).size(), 1U);
}

TEST(PricePartsTest, NeedsARateForAnotherCurrency) {
  EXPECT_THROW(price_parts({kCard}, {.currency = "USD"}), base::Error);
  EXPECT_DOUBLE_EQ(price_parts({kCard}, {.currency = "USD", .gbp = 1.25}).front().price, 1250);
}

TEST(PricePartsTest, NamesTheLineOfABadRow) {
  for (const char* wrong : {"part,price\ncrad,5\n", "part,price\ncard,five\n", "part,price,currency\ncard,5,USD\n",
                            "part,price,currency\ncard,5,XYZ\n", "part,price,vat\ncard,5,some\n"}) {
    try {
      price_parts({kCard}, with_own(wrong));
      ADD_FAILURE() << wrong;
    } catch (const base::Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("my.csv:2")) << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep::advice
