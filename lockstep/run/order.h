// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::run {

// The shuffled order of one epoch: a bijection of 0 .. size - 1 fixed by (seed, epoch), in constant memory, each
// index in constant time. A Feistel network over the next power of two; an index that lands outside walks on.
// Mixes well enough for training, not for secrets.
class Order {
 public:
  Order(int64_t size, int64_t seed, int64_t epoch);
  int64_t operator()(int64_t index) const;  // the sample at this position. REQUIRES: 0 <= index < size
  int64_t size() const { return size_; }

 private:
  static constexpr int kRounds = 8;
  uint64_t encrypt(uint64_t value) const;

  int64_t size_;
  int low_bits_ = 0;
  int high_bits_ = 0;
  std::array<uint64_t, kRounds> keys_{};
};

struct Range {  // [begin, end)
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Batches of one epoch: each holds `global_batch` positions of the order, the last one what is left.
int64_t num_steps(int64_t num_samples, int64_t global_batch);

// The positions of the batch that follows after `consumed` samples; empty at the end of the epoch.
Range batch_range(int64_t num_samples, int64_t global_batch, int64_t consumed);

// The contiguous share of `rank`; the shares of all ranks together are the batch, sizes differ by one at most.
Range rank_range(Range batch, int64_t rank, int64_t num_ranks);

// Likewise, of a batch that is first cut into `num_slices` (slice s is rank_range(batch, s, num_slices)) of which a
// rank gets whole ones, rank_range({0, num_slices}, rank, num_ranks). With 0 slices: as above.
Range rank_range(Range batch, int64_t rank, int64_t num_ranks, int64_t num_slices);

}  // namespace lockstep::run
