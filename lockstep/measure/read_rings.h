// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::measure {

// The two ways in which a loader reads shards, io_uring and threads that pread, over one file: pieces of a size in
// random order, `depth` of them under way, in turns.
struct RingBench {
  base::Path folder = ".";                // the file is made here, on the file system that is asked about
  int64_t file_bytes = int64_t{1} << 30;  // removed afterwards
  std::vector<int64_t> sizes = {16 << 10, 128 << 10, 8 << 20};  // small images, photographs, extents
  int depth = 64;
  int64_t rounds = 5;
};

struct RingRow {
  std::string ring;   // "io_uring" or "pread"
  bool cold = false;  // the file was put out of the page cache before
  int64_t size = 0;
  int64_t reads = 0;
  double seconds = 0;      // of the middle round
  double cpu_seconds = 0;  // of that round, kernel and all threads

  double bytes_per_second() const { return static_cast<double>(reads * size) / seconds; }
};

struct RingFigures {
  std::vector<RingRow> rows;          // by size, cold before warm, io_uring before pread
  std::vector<std::string> left_out;  // with the reason
};

// User error when a size is larger than the file; machine error when the folder does not take the file.
RingFigures bench_rings(const RingBench& bench);

base::Json ring_rows(const RingBench& bench, const RingFigures& figures, const std::string& command);
std::string ring_text(const RingFigures& figures);

}  // namespace lockstep::measure
