// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_coco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;

class CocoSourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  base::TemporaryFolder folder_;
  std::string image_ = image::encode_jpeg(image::Image(30, 20), 90);
};

TEST_F(CocoSourceTest, JoinsTheListsOfAPart) {
  put("train2017/1.jpg", image_);
  put("val2017/2.jpg", image_);
  const std::string images =
      R"("images": [{"id": 1, "file_name": "1.jpg", "width": 30, "height": 20}, {"id": 9, "file_name": "absent.jpg"}])";
  put("annotations/instances_train2017.json",
      "{" + images +
          R"(, "categories": [{"id": 5, "name": "dog"}], "annotations": [{"image_id": 1, "category_id": 5, "bbox": [1, 2, 3, 4]}]})");
  put("annotations/captions_train2017.json",
      "{" + images + R"(, "annotations": [{"image_id": 1, "caption": "a dog"}]})");
  put("annotations/instances_val2017.json",
      R"({"images": [{"id": "two", "file_name": "2.jpg"}], "categories": [{"id": 5, "name": "dog"}]})");
  ASSERT_TRUE(looks_like_coco({.path = folder_.path()}));
  const auto source = open_coco({.path = folder_.path()});
  EXPECT_THAT(source->classes(), ElementsAre("dog"));
  const auto size = static_cast<int64_t>(image_.size());
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"train2017/1.jpg", shards::kNoLabel, Part::train, size},
                                             SourceSample{"val2017/2.jpg", shards::kNoLabel, Part::validate, size}));
  EXPECT_EQ(source->load(0)[1].bytes,
            R"({"image_id":1,"file_name":"1.jpg","width":30,"height":20,"captions":["a dog"],)"
            R"("objects":[{"label":0,"category":"dog","category_id":5,"bbox":[1,2,3,4]}]})");
  EXPECT_EQ(source->load(1)[1].bytes, R"({"image_id":"two","file_name":"2.jpg","width":30,"height":20})");
  EXPECT_EQ(source->refused().size(), 2u);  // absent, in two lists
}

TEST_F(CocoSourceTest, AnImageInListsOfTwoPartsIsAnErrorThatNamesBoth) {
  put("images/1.jpg", image_);
  const std::string list = R"({"images": [{"id": 1, "file_name": "1.jpg"}], "categories": [{"id": 5, "name": "dog"}],
      "annotations": [{"id": 25, "image_id": 1, "category_id": 5, "bbox": [1, 2, 3, 4]}]})";
  put("annotations/instances_train2014.json", list);
  put("annotations/instances_train2017.json", list);
  const auto source = open_coco({.path = folder_.path()});
  ASSERT_EQ(source->samples().size(), 1u);
  EXPECT_EQ(base::parse_json(source->load(0)[1].bytes, "json").at("objects").size(), 1u);
  put("annotations/instances_val2014.json", list);
  try {
    open_coco({.path = folder_.path()});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("instances_train2014.json (part train) and "));
    EXPECT_THAT(error.what(), testing::HasSubstr("instances_val2014.json (part validate)"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("give the one list"));
  }
}

// A JPEG of 64 x 32 pixels as stored, black but for a white field of x 8 to 24, y 4 to 12; lossless enough by its size.
std::string turned_jpeg(int orientation) {
  using std::string_literals::operator""s;
  image::Image image(64, 32);
  for (int64_t y = 4; y < 12; ++y) std::fill(image.row(y) + 3 * 8, image.row(y) + 3 * 24, uint8_t{255});
  std::string file = image::encode_jpeg(image, 100);
  const std::string exif =
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + static_cast<char>(orientation) + "\0\0\0\0\0\0\0"s;
  return file.insert(2, "\xFF\xE1\0"s + static_cast<char>(exif.size() + 2) + exif);
}

image::Image decoded(const std::string& file) {
  return image::decode_image(std::as_bytes(std::span(file.data(), file.size())));
}

TEST_F(CocoSourceTest, TurnsWhatIsDrawnOnAnImageWithIt) {
  const std::string field = R"(, "bbox": [8, 4, 16, 8], "segmentation": [[8, 4, 24, 4, 24, 12, 8, 12]]}]})";
  const std::string upright = R"(, "bbox": [20, 8, 8, 16], "segmentation": [[28, 8, 28, 24, 20, 24, 20, 8]]}]})";
  const auto check = [&](int orientation, const std::string& size, const std::string& drawn) {
    put("a.jpg", turned_jpeg(orientation));
    put("x.json", R"({"categories": [{"id": 1, "name": "field"}], "images": [{"id": 1, "file_name": "a.jpg")" + size +
                      R"(}], "annotations": [{"id": 1, "image_id": 1, "category_id": 1)" + drawn);
    const auto members = open_coco({.path = folder_.path() / "x.json", .masks = true})->load(0);
    ASSERT_EQ(members.size(), 3u);
    const image::Image image = decoded(members[0].bytes), outlines = decoded(members[2].bytes);
    const base::Json sample = base::parse_json(members[1].bytes, "json");
    ASSERT_EQ(outlines.width, image.width) << orientation;
    ASSERT_EQ(outlines.height, image.height) << orientation;
    EXPECT_EQ(sample.at("width").as_int(), image.width);
    EXPECT_EQ(sample.at("height").as_int(), image.height);
    const auto& box = sample.at("objects").items()[0].at("bbox").items();
    const int64_t left = box[0].as_int(), top = box[1].as_int();
    const int64_t right = left + box[2].as_int(), bottom = top + box[3].as_int();
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < image.width; ++x) {
        const bool is_field = image.row(y)[3 * x] > 127;
        ASSERT_EQ(is_field, outlines.row(y)[3 * x] == 1) << orientation << size << " at " << x << ", " << y;
        ASSERT_EQ(is_field, x >= left && x < right && y >= top && y < bottom) << orientation << size;
      }
    }
  };
  for (int orientation = 1; orientation <= 8; ++orientation) {
    check(orientation, R"(, "width": 64, "height": 32)", field);
    check(orientation, "", field);
  }
  check(6, R"(, "width": 32, "height": 64)", upright);  // the size that is seen: drawn on the image as seen
}

TEST_F(CocoSourceTest, RefusesAnImageOfAnotherSizeThanListed) {
  put("a.jpg", image_);
  put("x.json", R"({"images": [{"id": 1, "file_name": "a.jpg", "width": 60, "height": 20}]})");
  const auto source = open_coco({.path = folder_.path() / "x.json"});
  try {
    source->load(0);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("drawn on 60 x 20 pixels, and it has 30 x 20"));
  }
}

TEST_F(CocoSourceTest, OneMissingImageIsLeftOutEvenTheFirst) {
  put("pictures/b.jpg", image_);
  put("x.json", R"({"images": [{"id": 1, "file_name": "gone.jpg"}, {"id": 2, "file_name": "b.jpg"}],
      "annotations": [{"id": 5, "image_id": 3}]})");
  const auto source = open_coco({.path = folder_.path() / "x.json", .images = folder_.path() / "pictures"});
  ASSERT_EQ(source->samples().size(), 1u);
  EXPECT_EQ(source->samples()[0].name, "b.jpg");
  ASSERT_EQ(source->refused().size(), 2u);
  EXPECT_EQ(source->refused()[0].name, "gone.jpg");
  EXPECT_THAT(source->refused()[1].name, testing::HasSubstr("x.json: annotation 5"));
}

TEST_F(CocoSourceTest, FindsTheImagesOfOneFileBesideIt) {
  put("annotations/heads.json", R"({"images": [{"id": 1, "file_name": "a.jpg"}]})");
  put("images/a.jpg", image_);
  const SourceOptions options{.path = folder_.path() / "annotations/heads.json"};
  ASSERT_TRUE(looks_like_coco(options));
  EXPECT_EQ(open_coco(options)->samples()[0].name, "images/a.jpg");
  put("annotations/lost.json", R"({"images": [{"id": 1, "file_name": "b.jpg"}]})");
  EXPECT_THROW(open_coco({.path = folder_.path() / "annotations/lost.json"}), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
