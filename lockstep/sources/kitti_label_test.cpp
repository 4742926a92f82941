// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/kitti_label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::HasSubstr;

TEST(KittiLabelTest, ReadsObjects) {
  const base::Json objects = parse_kitti_labels(
      "Car 0.00 1 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\r\n\n"
      "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10\n",
      "000000.txt");
  ASSERT_EQ(objects.size(), 2u);
  const base::Json& car = objects.items()[0];
  EXPECT_EQ(car.at("label").as_int(), 0);
  EXPECT_EQ(car.at("category").as_string(), "Car");
  EXPECT_EQ(car.at("bbox").dump(-1), "[587.01,173.33,27.11,26.79]");
  EXPECT_EQ(car.at("dimensions").dump(-1), "[1.65,1.67,3.64]");
  EXPECT_EQ(car.at("rotation_y").as_double(), -1.59);
  EXPECT_EQ(objects.items()[1].at("label").as_int(), 8);
  EXPECT_EQ(parse_kitti_labels("", "x").size(), 0u);
}

TEST(KittiLabelTest, ReadsCalibration) {
  EXPECT_EQ(parse_kitti_calibration("P2: 7.2e+02 0 6 4\nR0_rect: 1 0 0\n\n", "x").dump(-1),
            R"({"P2":[720,0,6,4],"R0_rect":[1,0,0]})");
  EXPECT_THROW(parse_kitti_calibration("P2 1 2\n", "x"), base::Error);
}

TEST(KittiLabelTest, NamesTheLineThatIsWrong) {
  const auto complaint = [](const std::string& text) {
    try {
      parse_kitti_labels(text, "7.txt");
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string("no complaint");
  };
  const std::string good = "Car 0 0 0 1 1 2 2 1 1 1 1 1 1 0\n";
  EXPECT_THAT(complaint(good + "Cat 0 0 0 1 1 2 2 1 1 1 1 1 1 0\n"), HasSubstr("7.txt:2: unknown type \"Cat\""));
  EXPECT_THAT(complaint("Car 0 0 0\n"), HasSubstr("7.txt:1: 4 columns, 15 are expected"));
  EXPECT_THAT(complaint("Car 0 0 0 1 1 nan 2 1 1 1 1 1 1 0\n"), HasSubstr("\"nan\" is no number"));
  EXPECT_THAT(complaint("Car 0 0 0 3 1 2 2 1 1 1 1 1 1 0\n"), HasSubstr("the box ends before it begins"));
}

}  // namespace
}  // namespace lockstep::sources
