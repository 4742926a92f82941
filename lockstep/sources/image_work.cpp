// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/image_work.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/label_image.h"
#include "lockstep/shards/shard_writer.h"

namespace lockstep::sources {
namespace {

std::span<const std::byte> file_bytes(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

uint64_t hash_of(const std::string& bytes) {
  base::Sha256 hash;
  hash.update(bytes);
  const base::Sha256::Digest digest = hash.digest();
  uint64_t first = 0;
  std::memcpy(&first, digest.data(), sizeof first);
  return first;
}

image::Image fitted(image::Image image, int64_t max_side) {
  const int64_t longer = std::max(image.width, image.height);
  if (max_side == 0 || longer <= max_side) return image;
  const auto scaled = [&](int64_t side) { return std::max<int64_t>((side * max_side + longer / 2) / longer, 1); };
  return image::resize_image(image, scaled(image.width), scaled(image.height));
}

}  // namespace

void PixelSums::add(const image::Image& image) {
  num_pixels += image.width * image.height;
  const uint8_t* pixel = image.pixels.data();
  for (int64_t y = 0; y < image.height; ++y) {  // a row may have 2^27 pixels: its squares fit into 43 bits
    std::array<uint64_t, 3> row_sum = {};
    std::array<uint64_t, 3> row_square = {};
    for (int64_t x = 0; x < image.width; ++x, pixel += 3) {
      for (size_t c = 0; c < 3; ++c) {
        const uint32_t value = pixel[c];
        row_sum[c] += value;
        row_square[c] += uint64_t{value} * value;
      }
    }
    for (size_t c = 0; c < 3; ++c) {
      sum[c] += static_cast<int64_t>(row_sum[c]);
      square[c] += static_cast<int64_t>(row_square[c]);
    }
  }
}

void PixelSums::add(const PixelSums& other) {
  num_pixels += other.num_pixels;
  for (size_t c = 0; c < 3; ++c) {
    sum[c] += other.sum[c];
    square[c] += other.square[c];
  }
}

std::array<double, 3> PixelSums::mean() const {
  std::array<double, 3> all = {};
  for (size_t c = 0; c < 3 && num_pixels > 0; ++c) {
    all[c] = static_cast<double>(sum[c]) / static_cast<double>(num_pixels) / 255;
  }
  return all;
}

std::array<double, 3> PixelSums::deviation() const {
  std::array<double, 3> all = {};
  for (size_t c = 0; c < 3 && num_pixels > 0; ++c) {
    const double mean = static_cast<double>(sum[c]) / static_cast<double>(num_pixels);
    const double variance = static_cast<double>(square[c]) / static_cast<double>(num_pixels) - mean * mean;
    all[c] = std::sqrt(std::max(variance, 0.0)) / 255;
  }
  return all;
}

FinishedSample finish_sample(std::vector<SourceMember> members, const ImageOptions& options) {
  base::ensure(!members.empty(), "a source gives one member at least");
  FinishedSample done;
  done.content_hash = hash_of(members.front().bytes);
  for (const auto& member : members) done.bytes_in += static_cast<int64_t>(member.bytes.size());
  SourceMember& first = members.front();
  if (first.extension.empty() || image::is_image_extension(first.extension)) {
    const image::ImageInfo info = image::read_image_info(file_bytes(first.bytes));
    image::Image image = image::decode_image(file_bytes(first.bytes));
    done.was_shrunk = options.max_side > 0 && std::max(image.width, image.height) > options.max_side;
    const bool is_jpeg = info.format == image::ImageFormat::jpeg;
    // An image that is to stay byte for byte keeps its EXIF orientation: whoever decodes it turns it, as here.
    const bool stays = !options.restarts && !done.was_shrunk;
    done.was_turned = info.orientation != 1 && !stays;
    const bool is_webp = info.format == image::ImageFormat::webp, is_tiff = info.format == image::ImageFormat::tiff;
    const bool is_encoded = done.was_shrunk || done.was_turned || is_tiff;
    first.extension = is_jpeg || done.was_shrunk || (is_webp && is_encoded) ? "jpg" : is_webp ? "webp" : "png";
    if (is_encoded) {
      image = fitted(std::move(image), options.max_side);
      first.bytes = first.extension == "jpg" ? image::encode_jpeg(image, options.quality) : image::encode_png(image);
    }
    if (first.extension == "jpg" && options.restarts)
      first.bytes = image::with_restart_markers(file_bytes(first.bytes));
    for (size_t i = 1; done.was_shrunk && i < members.size(); ++i) {  // labels of pixels go with the pixels
      if (members[i].extension == kLabelImage)
        members[i].bytes = image::resize_labels(file_bytes(members[i].bytes), image.width, image.height);
    }
    for (size_t i = 1; i < members.size(); ++i) {  // no two of a sample share a name
      if (members[i].extension == first.extension) members[i].extension = "2." + first.extension;
    }
    done.width = image.width;
    done.height = image.height;
    done.pixels.add(image);
  }
  done.members = std::move(members);
  return done;
}

}  // namespace lockstep::sources
