// sources: lockstep/base/*.cpp lockstep/sources/coco_list.cpp lockstep/sources/json_slices.cpp lockstep/image/mask.cpp lockstep/image/runs.cpp lockstep/image/augment*.cpp lockstep/image/decode*.cpp lockstep/image/exif*.cpp lockstep/image/jpeg_*.cpp lockstep/image/png_*.cpp lockstep/image/policy.cpp lockstep/image/re*.cpp lockstep/image/tiff_*.cpp lockstep/image/webp_*.cpp libraries: -ljpeg -lpng -ltiff -lwebp
// SPDX-License-Identifier: Apache-2.0
// Any text is a COCO list whose every image can be described, or a user error.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/sources/coco_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    const sources::CocoList list(text, "fuzz.json");
    std::map<std::string, int32_t> labels;
    for (const auto& [id, name] : list.categories()) labels.emplace(name, static_cast<int32_t>(labels.size()));
    for (size_t i = 0; i < list.images().size(); ++i) {
      base::Json sample = base::Json::object();
      std::set<std::string> told;
      list.describe(i, labels, sample, told);
      list.describe(i, labels, sample, told);  // an overlapping list
      (void)base::parse_json(sample.dump(-1), "sample");
    }
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
