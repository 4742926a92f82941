// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"

namespace lockstep::measure {

// Whole epochs of a folder of shards, as a training reads them, without the training: rate, memory, reads.
struct ReadBench {
  std::string folder;
  spec::Data data = {};  // image_size, memory, order, extent, window, pixels
  int64_t batch = 64;
  int64_t threads = 1;
  int64_t epochs = 10;
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

struct ReadEpoch {
  double seconds = 0;
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;  // after it, with all read ahead, above what was resident before the loader was made
  int64_t peak_bytes = 0;      // since the loader was made, likewise
  int64_t read_bytes = 0;      // by the loader's reads, the next epoch's first ones among them
  int64_t reads = 0;
  int64_t missed = 0;  // samples that were not seen exactly once
};

struct ReadFigures {
  int64_t samples = 0;
  int64_t shards = 0;
  int64_t shard_bytes = 0;
  double open_seconds = 0;     // list, indexes, loader
  int64_t resident_bytes = 0;  // before the loader was made: program and indexes
  std::vector<ReadEpoch> epochs;

  int64_t peak_bytes() const;
  double samples_per_second() const;  // of all epochs
};

ReadFigures bench_reading(const ReadBench& bench);

base::Json reading_rows(const ReadBench& bench, const ReadFigures& figures, const std::string& command);
std::string reading_text(const ReadBench& bench, const ReadFigures& figures);

}  // namespace lockstep::measure
