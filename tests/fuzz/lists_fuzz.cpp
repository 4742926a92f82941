// sources: lockstep/base/*.cpp lockstep/sources/kitti_label.cpp lockstep/sources/text_table.cpp lockstep/sources/file_tree.cpp lockstep/sources/npy.cpp
// SPDX-License-Identifier: Apache-2.0
// Any text is a table, KITTI labels, a calibration, an array, or a user error: the first byte chooses which is tried.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/sources/kitti_label.h"
#include "lockstep/sources/npy.h"
#include "lockstep/sources/text_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  try {
    switch (bytes[0] % 4) {
      case 0: {
        const sources::TextTable table(text, "fuzz.csv");
        for (int64_t i = 0; i < table.size(); ++i) {
          if (table.row(i).size() > text.size() + 1 || table.line_of(i) < 1) std::abort();
        }
        break;
      }
      case 1:
        (void)base::parse_json(sources::parse_kitti_labels(text, "fuzz.txt").dump(-1), "labels");
        break;
      case 2:
        (void)base::parse_json(sources::parse_kitti_calibration(text, "fuzz.txt").dump(-1), "calibration");
        break;
      default: {
        const auto file = std::as_bytes(std::span(text.data(), text.size()));
        const sources::NpyHeader header = sources::read_npy_header(file, "fuzz.npy");
        if (header.shape.empty() || header.count() == 0) break;
        const std::string slice = sources::npy_slice(file, header, header.count() - 1);
        const sources::NpyHeader again =
            sources::read_npy_header(std::as_bytes(std::span(slice.data(), slice.size())), "slice");
        if (again.item_bytes != header.item_bytes) std::abort();
      }
    }
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
