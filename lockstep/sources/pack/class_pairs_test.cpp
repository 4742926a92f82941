// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/class_pairs.h"

#include <gtest/gtest.h>

namespace lockstep::sources {
namespace {

TEST(ClassPairsTest, SaysHowMuchOftenerThanByChance) {
  ClassPairs all, first, second;
  for (int64_t i = 0; i < 40; ++i) {
    const std::vector<int64_t> objects = i < 20 ? std::vector<int64_t>{1, 0, 3} : std::vector<int64_t>{0, 2};
    all.add(objects);
    (i % 2 == 0 ? first : second).add(objects);
  }
  second.add(first);
  EXPECT_EQ(second, all);
  EXPECT_EQ(ClassPairs::from_json(all.to_json()), all);
  EXPECT_EQ(all.csv({"George", "bicycle", "a, \"b\"", "never"}, 40),
            "class,beside,weight\n"
            "George,bicycle,0.0909\n"              // 0 of 10 expected ones
            "George,\"a, \"\"b\"\"\",1.9091\n"     // 20
            "bicycle,\"a, \"\"b\"\"\",0.0909\n");  // 0
}

TEST(ClassPairsTest, SaysLittleOfWhatIsRare) {
  ClassPairs all;
  all.add({1});
  all.add({0, 1});
  for (int i = 0; i < 98; ++i) all.add({0, 0, 1});
  EXPECT_NE(all.csv({"a", "b", "c"}, 100).find("a,b,0.9901\n"), std::string::npos) << all.csv({"a", "b", "c"}, 100);
}

}  // namespace
}  // namespace lockstep::sources
