// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/loader/fetch.h"
#include "lockstep/loader/store.h"
#include "lockstep/task/task.h"

namespace lockstep::loader {

struct Errand {  // one row of a batch
  int64_t id = 0;
  int64_t epoch = 0;
  int64_t ticket = 0;  // the fetcher's
  int64_t draw = 0;    // what its view is drawn by: the sample, or its position where a sample may come twice an epoch
};

// A sample's bytes while it is encoded: read ahead from a shard, or read now into `memory`. What it refers to outlives
// it.
class SampleBytes {
 public:
  SampleBytes(const Store& store, Fetcher* fetcher, const Errand& errand, std::vector<std::byte>& memory);
  ~SampleBytes();
  SampleBytes(const SampleBytes&) = delete;
  SampleBytes& operator=(const SampleBytes&) = delete;

  task::StoredSample stored(int32_t label) const;  // without an image where the fetcher was abandoned

 private:
  Fetcher* fetcher_;
  std::vector<std::byte> fetched_;
  std::vector<std::span<const std::byte>> parts_;
};

}  // namespace lockstep::loader
