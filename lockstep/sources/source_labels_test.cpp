// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/label_image.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LabelSourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::write_file(folder_.path() / name, content);
  }
  void put_pair(const std::string& images, const std::string& labels, const std::string& stem, int64_t width = 2) {
    put(images + "/" + stem + ".png", image::encode_png(image::Image(2, 1)));
    put(labels + "/" + stem + ".png",
        image::encode_labels({width, 1, std::vector<uint8_t>(static_cast<size_t>(width), 1)}));
  }
  OpenedSource open() const { return open_source({.path = folder_.path()}); }

  base::TemporaryFolder folder_;
};

TEST_F(LabelSourceTest, VocsListsSayWhichImageIsOfWhichPart) {
  for (const char* stem : {"a", "b", "c"}) put_pair("JPEGImages", "SegmentationClass", stem);
  put("JPEGImages/unlabelled.png", image::encode_png(image::Image(2, 1)));
  put("ImageSets/Segmentation/train.txt", "a\n");
  put("ImageSets/Segmentation/val.txt", "b\n");
  const OpenedSource opened = open();
  EXPECT_EQ(opened.format, "labels");
  ASSERT_EQ(opened.source->samples().size(), 2U);
  EXPECT_EQ(opened.source->samples()[0].part, Part::train);
  EXPECT_EQ(opened.source->samples()[1].part, Part::validate);
  EXPECT_EQ(opened.source->classes().size(), 21U);
  EXPECT_EQ(opened.source->classes()[15], "person");
  EXPECT_EQ(opened.source->load(0)[1].extension, kLabelImage);
}

TEST_F(LabelSourceTest, WhatVocsListsNameAndIsNotThereIsTold) {
  for (const char* stem : {"a", "b"}) put_pair("JPEGImages", "SegmentationClass", stem);
  put("JPEGImages/bare.png", image::encode_png(image::Image(2, 1)));
  put("ImageSets/Segmentation/train.txt", "a\nbare\nlost\n");
  const OpenedSource opened = open();
  EXPECT_EQ(opened.source->samples().size(), 1U);
  EXPECT_THAT(opened.source->refused(),
              ElementsAre(Refused{"JPEGImages/bare.png", "has no label image SegmentationClass/bare.png"},
                          Refused{"lost", "is listed in ImageSets/Segmentation, and JPEGImages has no such image"}));
}

TEST_F(LabelSourceTest, FoldersOfImagesAndLabelsMayHaveParts) {
  put_pair("images/train", "labels/train", "a");
  put_pair("images/val", "labels/val", "a");
  put("images/val/b.png", image::encode_png(image::Image(2, 1)));
  put("classes.txt", "sky\nroad\n");
  const OpenedSource opened = open();
  ASSERT_EQ(opened.source->samples().size(), 2U);
  EXPECT_EQ(opened.source->samples()[1].part, Part::validate);
  EXPECT_THAT(opened.source->classes(), ElementsAre("sky", "road"));
  ASSERT_EQ(opened.source->refused().size(), 1U);
  EXPECT_THAT(opened.source->refused()[0].reason, HasSubstr("no label image labels/val/b.png"));
}

TEST_F(LabelSourceTest, ACorrectedLabelImageMakesAnotherSet) {
  put_pair("images", "labels", "a");
  const auto before = open().source->samples();
  put_pair("images", "labels", "a", 300);
  EXPECT_NE(open().source->samples(), before);
}

TEST_F(LabelSourceTest, ALabelImageOfAnotherSizeIsNamed) {
  put_pair("images", "labels", "a", 3);
  try {
    open().source->load(0);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("its label image is 3 x 1, the image 2 x 1"));
  }
}

}  // namespace
}  // namespace lockstep::sources
