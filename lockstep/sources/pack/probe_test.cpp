// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/probe.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/tar.h"
#include "lockstep/sources/pack/pack.h"

namespace lockstep::sources {
namespace {

class OneImage final : public Source {
 public:
  explicit OneImage(std::string image) : image_(std::move(image)) {
    samples_.assign(100, {"x.jpg", 0, Part::open, static_cast<int64_t>(image_.size())});
  }
  std::vector<SourceMember> load(int64_t) const override { return {{"", image_}}; }

 private:
  std::string image_;
};

TEST(ProbeTest, ExpectsSmallerFilesOnlyWhenImagesAreShrunk) {
  image::Image image(400, 300);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7919 >> 5);
  const OneImage source(image::encode_jpeg(image, 90));
  EXPECT_EQ(expected_growth(source, {}), 1);
  EXPECT_EQ(expected_growth(source, {.max_side = 100}), expected_growth(source, {.max_side = 100}));
  EXPECT_LT(expected_growth(source, {.max_side = 100}), 0.3);
}

TEST(ProbeTest, ExpectsTheMasksToo) {
  const base::TemporaryFolder folder;
  const base::Path pets = folder.path() / "pets";
  for (const char* below : {"images", "annotations/trimaps"}) base::make_folders(pets / below);
  image::Image image(60, 40);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i * 31 >> 7);
  std::string list;
  for (int i = 0; i < 20; ++i) {
    const std::string name = base::text("pug_", i);
    base::write_file(pets / "images" / (name + ".jpg"), image::encode_jpeg(image, 90));
    base::write_file(pets / "annotations/trimaps" / (name + ".png"), image::encode_png(image));
    list += name + " 1 1 1\n";
  }
  base::write_file(pets / "annotations/trainval.txt", list);
  for (const bool masks : {false, true}) {
    PackRequest request;
    request.source.path = pets;
    request.source.masks = masks;
    request.folder = folder.path() / base::text("set", masks);
    request.validate = 0;
    const PackForecast forecast = forecast_pack(request);
    const base::Json part = pack(request, {}).dataset.at("parts").at("train");
    EXPECT_EQ(forecast.bytes_in, part.at("bytes_in").as_int());
    const auto fact = part.at("tar_bytes").as_double() + 20 * 200;  // and the indexes
    EXPECT_NEAR(static_cast<double>(forecast.bytes_out), fact, 0.02 * fact + shards::kTarRecord) << masks;
  }
}

}  // namespace
}  // namespace lockstep::sources
