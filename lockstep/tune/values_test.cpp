// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/values.h"

#include <gtest/gtest.h>

namespace lockstep::tune {
namespace {

TEST(ValuesTest, AreSortedByNameWhateverTheOrder) {
  Values values{{"momentum", 0.9}, {"lr", 0.1}};
  values["batch"] = 32;
  values["lr"] = 0.2;
  EXPECT_EQ(values, (Values{{"batch", 32}, {"lr", 0.2}, {"momentum", 0.9}}));
  EXPECT_EQ(values.begin()->first, "batch");
  EXPECT_EQ(values.size(), 3U);
  EXPECT_EQ(values.at("lr"), 0.2);
  EXPECT_TRUE(values.contains("momentum"));
  EXPECT_EQ(values.find("m"), values.end());
  EXPECT_THROW(values.at("m"), std::out_of_range);
  EXPECT_TRUE(Values{}.empty());
}

}  // namespace
}  // namespace lockstep::tune
