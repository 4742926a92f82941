// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

struct ImageOptions {
  int64_t max_side = 0;  // pixels of the longer side; larger images are shrunk. 0: none is
  int quality = 90;      // of the JPEGs that are encoded again
  bool restarts = true;  // JPEGs get a restart marker after each row of MCUs, without loss; without it images stay as
                         // they are unless they are shrunk, their EXIF orientation with them

  bool operator==(const ImageOptions&) const = default;
};

// Sums over the pixels of images, in whole numbers: the order in which they are added does not matter.
struct PixelSums {
  int64_t num_pixels = 0;
  std::array<int64_t, 3> sum = {};
  std::array<int64_t, 3> square = {};

  void add(const image::Image& image);
  void add(const PixelSums& other);
  std::array<double, 3> mean() const;  // of value / 255, as jobs write it
  std::array<double, 3> deviation() const;
  bool operator==(const PixelSums&) const = default;
};

struct FinishedSample {
  std::vector<SourceMember> members;
  uint64_t content_hash = 0;  // of the first member as it came
  int64_t bytes_in = 0;
  int64_t width = 0;  // of the image as it goes out; 0 when there is none
  int64_t height = 0;
  bool was_shrunk = false;
  bool was_turned = false;  // by its EXIF orientation; its pixels are upright now
  PixelSums pixels;
};

// What `prep` does to one sample: decodes the image (so that a damaged one is found), turns it upright, shrinks it,
// adds restart markers, counts its pixels. PNGs stay PNGs unless they are shrunk, byte for byte unless they are turned;
// WebPs stay byte for byte unless they are shrunk or turned, and become JPEGs then; TIFFs, which hardly any reader of
// shards knows, become PNGs of 8 bits. A label image is shrunk with its image. Everything else stays byte for byte.
// User error with the reason for an image that cannot be decoded.
FinishedSample finish_sample(std::vector<SourceMember> members, const ImageOptions& options);

}  // namespace lockstep::sources
