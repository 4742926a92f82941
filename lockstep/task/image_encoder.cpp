// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/image_encoder.h"

namespace lockstep::task {

void ImageEncoder::encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) {
  if (random) {
    renderer_.random(sample.image, *random, target(out[0]));
  } else {
    renderer_.center(sample.image, target(out[0]));
  }
  encode_rest(sample, out.subspan(1));
}

void ImageEncoder::draw(int32_t label, const base::Random& random, FieldPointers out) {
  renderer_.noise(random, target(out[0]));
  draw_rest(label, random, out.subspan(1));
}

void ImageEncoder::blank(FieldPointers out) {
  renderer_.blank(target(out[0]));
  blank_rest(out.subspan(1));
}

image::PixelTarget pixel_target(spec::Pixels pixels, std::byte* out) {
  if (pixels == spec::Pixels::uint8) return reinterpret_cast<uint8_t*>(out);
  if (pixels == spec::Pixels::bf16) return reinterpret_cast<uint16_t*>(out);
  return reinterpret_cast<float*>(out);
}

}  // namespace lockstep::task
