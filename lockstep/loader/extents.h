// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/loader/store.h"
#include "lockstep/run/order.h"

namespace lockstep::loader {

// An interval of a shard that is read at once: network file systems are slow to answer and fast to deliver.
struct Extent {
  run::Range samples;  // those whose images lie in it
  int64_t file = 0;
  int64_t offset = 0;
  int64_t size = 0;

  bool operator==(const Extent&) const = default;
};

// All samples of a store of shards, cut into extents of `bytes` or less; one image at least in each.
class Extents {
 public:
  Extents() = default;
  Extents(const Store& store, int64_t num_samples, int64_t bytes);

  const std::vector<Extent>& all() const { return extents_; }
  bool empty() const { return extents_.empty(); }
  int64_t of(int64_t id) const;  // which one the sample lies in

 private:
  std::vector<Extent> extents_;
};

}  // namespace lockstep::loader
