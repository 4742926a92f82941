// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_kitti.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;

TEST(KittiSourceTest, JoinsImageLabelAndCalibration) {
  const base::TemporaryFolder folder;
  for (const char* name : {"image_2", "label_2", "calib"}) base::make_folders(folder.path() / "training" / name);
  const std::string image = image::encode_png(image::Image(40, 20));
  base::write_file(folder.path() / "training/image_2/000000.png", image);
  base::write_file(folder.path() / "training/image_2/000001.png", image);
  base::write_file(folder.path() / "training/label_2/000000.txt", "Cyclist 0 0 0 1 2 11 12 1 1 1 1 1 1 0\n");
  base::write_file(folder.path() / "training/calib/000000.txt", "P2: 1 2\n");
  ASSERT_TRUE(looks_like_kitti({.path = folder.path()}));
  const auto source = open_kitti({.path = folder.path()});
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"training/image_2/000000.png", shards::kNoLabel, Part::open,
                                                          static_cast<int64_t>(image.size())}));
  EXPECT_THAT(source->refused(), ElementsAre(Refused{"training/image_2/000001.png", "has no label"}));
  EXPECT_NEAR(source->validate_share() * 7481, 481, 1e-9);
  const auto members = source->load(0);
  EXPECT_EQ(members[0].bytes, image);
  const base::Json sample = base::parse_json(members[1].bytes, "x");
  EXPECT_EQ(sample.at("image_id").as_string(), "000000");
  EXPECT_EQ(sample.at("file_name").as_string(), "000000.png");
  EXPECT_EQ(sample.at("width").as_int(), 40);
  EXPECT_EQ(sample.at("objects").items()[0].at("bbox").dump(-1), "[1,2,10,10]");
  EXPECT_EQ(sample.at("calibration").at("P2").size(), 2u);
  EXPECT_THROW(open_kitti({.path = folder.path() / "training/calib"}), base::Error);
}

TEST(KittiSourceTest, NamesBoxesOfWhichNothingCanBeLearnt) {
  const base::TemporaryFolder folder;
  for (const char* name : {"image_2", "label_2"}) base::make_folders(folder.path() / name);
  const std::string image = image::encode_png(image::Image(40, 20));
  const auto write = [&](const std::string& stem, const std::string& label) {
    base::write_file(folder.path() / "image_2" / (stem + ".png"), image);
    base::write_file(folder.path() / "label_2" / (stem + ".txt"), label);
  };
  const std::string rest = " 1 1 1 1 1 1 0\n";
  write("000000", "Car 0 0 0 1 2 11 12" + rest + "Car 0 0 0 5 5 5 9" + rest);         // no width
  write("000001", "Van 0 0 0 40 2 50 12" + rest + "Cyclist 0 0 0 3 25 9 30" + rest);  // right of it, below it
  write("000002", "Car 0 0 0 35 15 60 30" + rest + "DontCare 0 0 0 3 4 9 4" + rest);  // reaches beyond it: is cut
  write("000003", "Car no label\n");                                                  // told when it is packed
  const auto source = open_kitti({.path = folder.path()});
  EXPECT_EQ(source->samples().size(), 4u);
  EXPECT_THAT(
      source->notes(),
      ElementsAre("2 boxes have no area, the first is label_2/000000.txt, object 2 (Car): kept in the samples, "
                  "no objects for training",
                  "2 boxes have no part inside its image, the first is label_2/000001.txt, object 1 (Van): kept "
                  "in the samples, no objects for training"));
}

}  // namespace
}  // namespace lockstep::sources
