// sources: lockstep/base/*.cpp lockstep/image/mask.cpp lockstep/image/runs.cpp lockstep/image/augment*.cpp lockstep/image/decode*.cpp lockstep/image/exif*.cpp lockstep/image/jpeg_*.cpp lockstep/image/png_*.cpp lockstep/image/policy.cpp lockstep/image/re*.cpp lockstep/image/tiff_*.cpp lockstep/image/webp_*.cpp libraries: -ljpeg -lpng -ltiff -lwebp
// SPDX-License-Identifier: Apache-2.0
// Any bytes give an image or a user error; a part of it, at every scale, its rows with restart markers, and the pixels
// of both views likewise.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/jpeg_rows.h"
#include "lockstep/image/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  const auto file = std::as_bytes(std::span(bytes, size));
  try {
    image::ImageReader reader;
    const image::ImageInfo info = reader.open(file);
    if (info.width < 1 || info.height < 1 || info.width * info.height > image::kMaxPixels) std::abort();
    if (info.width * info.height > 1 << 16) return 0;  // large ones are slow, not different
    const image::JpegLayout layout = image::read_jpeg_layout(file);
    for (const uint32_t row : layout.row_offsets) {
      if (row > size) std::abort();
    }
    if (info.format == image::ImageFormat::jpeg) {
      const std::string restarted = image::with_restart_markers(file);
      (void)image::read_jpeg_layout(std::as_bytes(std::span(restarted.data(), restarted.size())));
    }
    const auto denominator = int64_t{1} << size % 4;
    image::DecodedPart part;
    reader.read({info.width / 3, info.height / 4, (info.width + 1) / 2, (info.height + 1) / 2, denominator}, part);
    if (part.image.pixels.size() != static_cast<size_t>(part.image.width * part.image.height * 3)) std::abort();
    const image::Image whole = image::decode_image(file);
    if (whole.width != info.width || whole.height != info.height) std::abort();
    spec::Data data;
    data.image_size = 16;
    data.augment = spec::Augment::strong;
    float out[16 * 16 * 3];
    image::Renderer renderer(data);
    renderer.center(file, out);
    renderer.random(file, base::Random(1, 0, size), out);
    data.augment = size % 2 == 0 ? spec::Augment::rand : spec::Augment::trivial;
    image::Renderer(data).random(file, base::Random(1, 0, size), out);
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
