// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/image/augment.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/resample.h"
#include "lockstep/spec/job.h"

namespace lockstep::image {

Normalisation normalisation_of(const spec::Data& data);

// From a file in memory to the network's pixels: decodes no more than the view needs, then crops, resizes, mirrors and
// normalises in one pass. Keeps its memory from one image to the next; one per thread.
class Renderer {
 public:
  explicit Renderer(const spec::Data& data);

  // From here on `out` is of this size in the place of data.image_size.
  void set_canvas(const spec::ImageSize& size) { data_.image_size = size; }

  // `out` is [height, width, 3] of data.image_size. Throws as decode.h says.
  void center(std::span<const std::byte> file, PixelTarget out);
  void random(std::span<const std::byte> file, const base::Random& numbers, PixelTarget out);
  // As `choose` says for an image of that size. Where the view is smaller than data.image_size it lies in the upper
  // left corner, and what remains is blank. `max_denominator`: of part_for. Returns what the file says of itself.
  ImageInfo chosen(std::span<const std::byte> file, const std::function<View(const ImageInfo&)>& choose,
                   int64_t max_denominator, PixelTarget out);
  double decode_seconds() const { return decode_seconds_; }  // of the last image: header and pixels
  // An image of noise that depends on `numbers` only, as bench and plan use it.
  void noise(base::Random numbers, PixelTarget out);
  void blank(PixelTarget out);  // the mean colour, which is 0 once it is normalised

 private:
  void show(const View& view, const PartRequest& request, PixelTarget out);
  void show_changed(const View& view, const Axis& x, const Axis& y, float* out);
  // Of an image that is `width` wide.
  void erase(const Rectangle& erased, int64_t width, PixelTarget out) const;
  void spread(int64_t width, int64_t height, PixelTarget out) const;
  void pack(PixelTarget out);  // what stands in floats_
  void change(const View& view, float* out);

  spec::Data data_;
  Normalisation normalisation_;
  ImageReader reader_;
  DecodedPart part_;
  std::vector<float> floats_;  // of targets other than floats
  Image shown_;                // of `changes`
  Image scratch_;
  std::chrono::steady_clock::time_point started_;
  double decode_seconds_ = 0;
  Resampler resampler_;
};

}  // namespace lockstep::image
