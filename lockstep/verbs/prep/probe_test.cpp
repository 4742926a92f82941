// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/probe.h"

#include <gtest/gtest.h>

#include "lockstep/data/decode.h"

namespace lockstep::verbs {
namespace {

class OnePicture final : public data::Source {
 public:
  explicit OnePicture(std::string picture) : picture_(std::move(picture)) {
    samples_.assign(100, {"x.jpg", 0, data::Part::open, static_cast<int64_t>(picture_.size())});
  }
  std::vector<data::SourceMember> load(int64_t) const override { return {{"", picture_}}; }

 private:
  std::string picture_;
};

TEST(ProbeTest, ExpectsSmallerFilesOnlyWhenPicturesAreShrunk) {
  data::Image image(400, 300);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7919 >> 5);
  const OnePicture source(data::encode_jpeg(image, 90));
  EXPECT_EQ(expected_growth(source, {}), 1);
  EXPECT_EQ(expected_growth(source, {.max_side = 100}), expected_growth(source, {.max_side = 100}));
  EXPECT_LT(expected_growth(source, {.max_side = 100}), 0.3);
}

}  // namespace
}  // namespace lockstep::verbs
