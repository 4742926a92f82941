// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/segment_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/label_image.h"

namespace lockstep::task {
namespace {

using testing::HasSubstr;

// Left half black with label 1, right half white with label 2.
class SegmentEncoderTest : public testing::Test {
 protected:
  SegmentEncoderTest() {
    job_.task = spec::Task::segment;
    job_.segment.classes = {"left", "right"};
    job_.segment.values = {1, 2};
    job_.data.image_size = 8;
    job_.data.mean = {0, 0, 0};
    job_.data.std = {1, 1, 1};
    image::Image image(8, 8);
    for (int64_t y = 0; y < 8; ++y) {
      for (int64_t x = 12; x < 24; ++x) image.row(y)[x] = 255;
    }
    file_ = image::encode_png(image);
    labels_ = {8, 8, {}};
    for (int i = 0; i < 64; ++i) labels_.pixels.push_back(i % 8 < 4 ? 1 : 2);
  }
  static std::span<const std::byte> bytes(const std::string& file) {
    return std::as_bytes(std::span(file.data(), file.size()));
  }
  void encode(const std::optional<base::Random>& random) {
    const std::string labels = image::encode_labels(labels_);
    StoredSample sample{0, bytes(file_), {bytes(labels)}};
    const auto encoder = make_segment_encoder(job_, {}, 2);
    std::vector<std::byte*> out{reinterpret_cast<std::byte*>(pixels_.data()), shown_.data()};
    encoder->encode(sample, random, out);
  }
  int label(size_t i) const { return std::to_integer<int>(shown_[i]); }

  spec::Job job_;
  std::string file_;
  image::Bitmap labels_;
  std::vector<float> pixels_ = std::vector<float>(8 * 8 * 3);
  std::vector<std::byte> shown_ = std::vector<std::byte>(64);
};

TEST_F(SegmentEncoderTest, ValuesBecomeLabelsAndTheIgnoredOneStaysOut) {
  labels_.pixels[0] = 255;
  encode(std::nullopt);
  EXPECT_EQ(label(0), kNoClass);
  EXPECT_EQ(label(1), 0);
  EXPECT_EQ(label(7), 1);
}

TEST_F(SegmentEncoderTest, LabelsMoveWithTheirPixels) {
  job_.data.crop_scale_min = 0.3;
  int mirrored = 0;
  for (uint64_t sample = 0; sample < 50; ++sample) {
    encode(base::Random(1, 0, sample));
    mirrored += label(0) == 1;
    for (size_t i = 0; i < 64; ++i) {
      const float white = pixels_[3 * i];
      if (white < 0.05F || white > 0.95F) {  // between them the edge of the halves
        EXPECT_EQ(label(i), white > 0.5F ? 1 : 0);
      }
    }
  }
  EXPECT_GT(mirrored, 10);
  EXPECT_LT(mirrored, 45);
}

TEST_F(SegmentEncoderTest, AValueThatIsNoLabelIsNamed) {
  labels_.pixels[9] = 7;
  try {
    encode(std::nullopt);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the value 7, which is none of the 2 labels and not segment.ignore, 255"));
  }
}

TEST_F(SegmentEncoderTest, ALabelImageOfAnotherSizeIsNamed) {
  labels_ = {4, 4, std::vector<uint8_t>(16, 1)};
  try {
    encode(std::nullopt);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("its label image is 4 x 4, the image 8 x 8"));
  }
}

TEST_F(SegmentEncoderTest, NumbersOfObjectsBecomeTheirClasses) {
  job_.segment = {};
  job_.segment.pixels = spec::LabelPixels::objects;
  const std::string labels = image::encode_labels({8, 8, std::vector<uint8_t>(64, 2)});
  const std::string json =
      R"({"width": 8, "height": 8, "objects": [{"bbox": [0, 0, 2, 2], "category": "cat"},
          {"bbox": [0, 0, 8, 8], "category": "dog"}]})";
  StoredSample sample{0, bytes(file_), {bytes(labels), bytes(json)}};
  std::vector<std::byte*> out{reinterpret_cast<std::byte*>(pixels_.data()), shown_.data()};
  make_segment_encoder(job_, {"cat", "dog"}, 3)->encode(sample, std::nullopt, out);
  EXPECT_EQ(label(20), 2);
}

}  // namespace
}  // namespace lockstep::task
