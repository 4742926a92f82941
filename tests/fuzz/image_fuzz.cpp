// sources: lockstep/base/*.cpp lockstep/data/augment*.cpp lockstep/data/decode*.cpp lockstep/data/exif*.cpp lockstep/data/jpeg_*.cpp lockstep/data/png_*.cpp lockstep/data/policy.cpp lockstep/data/re*.cpp libraries: -ljpeg -lpng
// SPDX-License-Identifier: Apache-2.0
// Any bytes give a picture or a user error; a part of it, at every scale, its rows with restart markers, and the pixels
// of both views likewise.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/data/decode.h"
#include "lockstep/data/jpeg_rows.h"
#include "lockstep/data/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  const auto file = std::as_bytes(std::span(bytes, size));
  try {
    data::ImageReader reader;
    const data::ImageInfo info = reader.open(file);
    if (info.width < 1 || info.height < 1 || info.width * info.height > data::kMaxPixels) std::abort();
    if (info.width * info.height > 1 << 16) return 0;  // large ones are slow, not different
    const data::JpegLayout layout = data::read_jpeg_layout(file);
    for (const uint32_t row : layout.row_offsets) {
      if (row > size) std::abort();
    }
    if (info.format == data::ImageFormat::jpeg) {
      const std::string restarted = data::with_restart_markers(file);
      (void)data::read_jpeg_layout(std::as_bytes(std::span(restarted.data(), restarted.size())));
    }
    const auto denominator = int64_t{1} << size % 4;
    data::DecodedPart part;
    reader.read({info.width / 3, info.height / 4, (info.width + 1) / 2, (info.height + 1) / 2, denominator}, part);
    if (part.image.pixels.size() != static_cast<size_t>(part.image.width * part.image.height * 3)) std::abort();
    const data::Image whole = data::decode_image(file);
    if (whole.width != info.width || whole.height != info.height) std::abort();
    spec::Data data;
    data.image_size = 16;
    data.augment = spec::Augment::strong;
    float out[16 * 16 * 3];
    data::Renderer renderer(data);
    renderer.center(file, out);
    renderer.random(file, base::Random(1, 0, size), out);
    data.augment = size % 2 == 0 ? spec::Augment::rand : spec::Augment::trivial;
    data::Renderer(data).random(file, base::Random(1, 0, size), out);
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
