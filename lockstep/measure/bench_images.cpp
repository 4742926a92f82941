// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/bench_images.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/resample.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/sources/file_tree.h"

namespace lockstep::measure {
namespace {

using base::text;

std::span<const std::byte> as_bytes(const std::string& content) {
  return std::as_bytes(std::span(content.data(), content.size()));
}

std::vector<std::string> image_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (sources::has_image_name(entry.path().filename().string())) files.push_back(entry.path().string());
  }
  if (files.empty()) throw base::Error(base::Blame::user, text("there is no photograph under ", folder));
  std::sort(files.begin(), files.end());
  return files;
}

image::Image covering_cut(const image::Image& image, int64_t width, int64_t height) {
  const double scale = std::min(static_cast<double>(image.width) / static_cast<double>(width),
                                static_cast<double>(image.height) / static_cast<double>(height));
  const auto axis = [scale](int64_t from, int64_t to) {
    const double begin = (static_cast<double>(from) - scale * static_cast<double>(to)) / 2;
    return image::Axis{.num_outputs = to, .begin = begin, .scale = scale, .low = 0, .high = from};
  };
  std::vector<float> values(static_cast<size_t>(width * height * 3));
  image::Resampler().run(image, axis(image.width, width), axis(image.height, height), {}, values.data());
  image::Image cut(width, height);
  std::transform(values.begin(), values.end(), cut.pixels.begin(),
                 [](float value) { return static_cast<uint8_t>(std::clamp(value * 255 + 0.5f, 0.0f, 255.0f)); });
  return cut;
}

class Shard {
 public:
  explicit Shard(const base::Path& folder)
      : folder_(folder), writer_((base::make_folders(folder), folder), "shard-000000") {}

  void add(const std::string& key, int32_t label, const std::string& jpeg) {
    const std::string label_text = text(label);
    writer_.add({key, label}, {{"jpg", jpeg}, {"cls", label_text}});
  }
  void finish() { shards::write_shard_list(folder_, {"bench", {"a", "b"}, {writer_.finish()}}); }

 private:
  base::Path folder_;
  shards::ShardWriter writer_;
};

}  // namespace

image::Image draw_image(int64_t width, int64_t height, uint64_t number) {
  std::vector<float> sum(static_cast<size_t>(width * height * 3), 0.5f), layer(sum.size());
  base::Random random(number, 0, 0);
  for (int64_t cells = 2; cells <= 256; cells *= 2) {  // noise on a grid, enlarged; the finer the weaker
    image::Image grid(cells, cells);
    for (auto& value : grid.pixels) value = static_cast<uint8_t>(random.bits());
    const bool gray = cells > 16;  // fine structure is mostly of light
    for (size_t i = 0; gray && i < grid.pixels.size(); ++i) grid.pixels[i] = grid.pixels[i / 3 * 3];
    const auto axis = [cells](int64_t to) {
      return image::Axis{
          .num_outputs = to, .scale = static_cast<double>(cells) / static_cast<double>(to), .high = cells};
    };
    image::Resampler().run(grid, axis(width), axis(height), {}, layer.data());
    const float weight = 0.45f * std::pow(static_cast<float>(cells), -0.35f);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * (layer[i] - 0.5f);
  }
  image::Image image(width, height);
  std::transform(sum.begin(), sum.end(), image.pixels.begin(),
                 [](float value) { return static_cast<uint8_t>(std::clamp(value * 255, 0.0f, 255.0f)); });
  return image;
}

ImageSet write_images(const base::Path& to, int64_t num_images, const std::string& photographs) {
  ImageSet set{to / "folder", to / "tars", to / "restarted", num_images, 0};
  const auto files = photographs.empty() ? std::vector<std::string>{} : image_files(photographs);
  for (const char* name : {"a", "b"}) base::make_folders(set.folder / name);
  Shard plain(set.tars), restarted(set.restarted_tars);
  for (int64_t i = 0; i < num_images; ++i) {
    const auto at = static_cast<size_t>(i);
    const image::Image image =
        files.empty() ? draw_image(kImageWidth, kImageHeight, at)
                      : covering_cut(image::decode_image(as_bytes(base::read_file(files[at % files.size()]))),
                                     kImageWidth, kImageHeight);
    const std::string jpeg = image::encode_jpeg(image, kImageQuality);
    const std::string key = text(1000000 + i);
    const auto label = static_cast<int32_t>(i % 2);
    base::FileWriter(set.folder / (label == 0 ? "a" : "b") / (key + ".jpg"), base::FileWriter::Mode::truncate)
        .write(jpeg);
    plain.add(key, label, jpeg);
    restarted.add(key, label, image::with_restart_markers(as_bytes(jpeg)));
    set.jpeg_bytes += static_cast<int64_t>(jpeg.size());
  }
  plain.finish();
  restarted.finish();
  return set;
}

}  // namespace lockstep::measure
