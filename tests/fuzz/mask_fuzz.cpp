// sources: lockstep/base/*.cpp lockstep/image/mask.cpp lockstep/image/runs.cpp lockstep/image/augment*.cpp lockstep/image/decode*.cpp lockstep/image/exif*.cpp lockstep/image/jpeg_*.cpp lockstep/image/png_*.cpp lockstep/image/policy.cpp lockstep/image/re*.cpp lockstep/image/tiff_*.cpp lockstep/image/webp_*.cpp libraries: -ljpeg -lpng -ltiff -lwebp
// SPDX-License-Identifier: Apache-2.0
// Any JSON is an outline of COCO's, whose pixels lie in the image, or a user error; any text likewise compressed runs.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/image/mask.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto refused = [](const auto& work) {
    try {
      work();
    } catch (const base::Error& error) {
      if (error.blame() != base::Blame::user) std::abort();
    }
  };
  refused([&] {
    const image::Mask mask = image::rasterize_mask(base::parse_json(text, "fuzz"), 40, 30);
    if (mask.inside.size() != 1200 || mask.area() > 1200) std::abort();
    image::ObjectsImage image(40, 30);
    image.add(&mask);
    (void)image.png();
  });
  refused([&] {
    if (image::parse_runs(text).size() > size) std::abort();
  });
  return 0;
}
