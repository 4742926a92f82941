// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/order.h"

#include <algorithm>
#include <bit>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::run {
namespace {

uint64_t low_mask(int bits) {
  return (uint64_t{1} << bits) - 1;
}

uint64_t round_function(uint64_t half, uint64_t key) {
  uint64_t mixed = (half ^ key) * 0xff51afd7ed558ccdu;
  mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53u;
  return mixed ^ (mixed >> 33);
}

}  // namespace

Order::Order(int64_t size, int64_t seed, int64_t epoch) : size_(size) {
  base::ensure(size > 0, "an order over at least one sample");
  const int bits = std::bit_width(static_cast<uint64_t>(size - 1));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  base::Random random(base::derive_seed(static_cast<uint64_t>(seed), "order"), 0, static_cast<uint64_t>(epoch));
  for (auto& key : keys_) key = random.bits64();
}

uint64_t Order::encrypt(uint64_t value) const {
  uint64_t low = value & low_mask(low_bits_);
  uint64_t high = value >> low_bits_;
  for (int round = 0; round < kRounds; round += 2) {  // each half changes by the other only: always invertible
    high ^= round_function(low, keys_[static_cast<size_t>(round)]) & low_mask(high_bits_);
    low ^= round_function(high, keys_[static_cast<size_t>(round) + 1]) & low_mask(low_bits_);
  }
  return high << low_bits_ | low;
}

int64_t Order::operator()(int64_t index) const {
  base::ensure(index >= 0 && index < size_, "an index within the epoch");
  auto value = static_cast<uint64_t>(index);
  do {
    value = encrypt(value);  // the cycle through `index` comes back inside: fewer than two turns on average
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

int64_t num_steps(int64_t num_samples, int64_t global_batch) {
  return (num_samples + global_batch - 1) / global_batch;
}

Range batch_range(int64_t num_samples, int64_t global_batch, int64_t consumed) {
  const int64_t begin = std::min(consumed, num_samples);
  return {begin, std::min(begin + global_batch, num_samples)};
}

Range rank_range(Range batch, int64_t rank, int64_t num_ranks) {
  const int64_t n = batch.size();
  return {batch.begin + rank * n / num_ranks, batch.begin + (rank + 1) * n / num_ranks};
}

Range rank_range(Range batch, int64_t rank, int64_t num_ranks, int64_t num_slices) {
  if (num_slices == 0) return rank_range(batch, rank, num_ranks);
  const Range slices = rank_range({0, num_slices}, rank, num_ranks);
  return {rank_range(batch, slices.begin, num_slices).begin, rank_range(batch, slices.end, num_slices).begin};
}

}  // namespace lockstep::run
