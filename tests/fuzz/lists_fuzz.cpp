// sources: lockstep/base/*.cpp lockstep/data/kitti_label.cpp lockstep/data/text_table.cpp lockstep/data/file_tree.cpp lockstep/data/npy.cpp
// SPDX-License-Identifier: Apache-2.0
// Any text is a table, KITTI labels, a calibration, an array, or a user error: the first byte chooses which is tried.
#include <cstdint>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/data/kitti_label.h"
#include "lockstep/data/npy.h"
#include "lockstep/data/text_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  try {
    switch (bytes[0] % 4) {
      case 0: {
        const data::TextTable table(text, "fuzz.csv");
        for (int64_t i = 0; i < table.size(); ++i) {
          if (table.row(i).size() > text.size() + 1 || table.line_of(i) < 1) std::abort();
        }
        break;
      }
      case 1:
        (void)base::parse_json(data::parse_kitti_labels(text, "fuzz.txt").dump(-1), "labels");
        break;
      case 2:
        (void)base::parse_json(data::parse_kitti_calibration(text, "fuzz.txt").dump(-1), "calibration");
        break;
      default: {
        const auto file = std::as_bytes(std::span(text.data(), text.size()));
        const data::NpyHeader header = data::read_npy_header(file, "fuzz.npy");
        if (header.shape.empty() || header.count() == 0) break;
        const std::string slice = data::npy_slice(file, header, header.count() - 1);
        const data::NpyHeader again =
            data::read_npy_header(std::as_bytes(std::span(slice.data(), slice.size())), "slice");
        if (again.item_bytes != header.item_bytes) std::abort();
      }
    }
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
