// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/random.h"

#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

// The finaliser of splitmix64: every input bit reaches every output bit.
uint64_t mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

uint64_t derive_seed(uint64_t seed, std::string_view purpose) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : purpose) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix64(mix64(seed + 0x9e3779b97f4a7c15u) ^ hash);
}

Random::Random(uint64_t seed, uint32_t stream, uint64_t index)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, stream, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32)} {}

uint32_t Random::bits() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t Random::bits64() {
  const uint64_t high = bits();
  return high << 32 | bits();
}

double Random::uniform() {
  return static_cast<double>(bits64() >> 11) * 0x1p-53;
}

int64_t Random::below(int64_t bound) {
  ensure(bound > 0, "a bound above zero");
  const auto range = static_cast<uint64_t>(bound);
  const uint64_t surplus = (0 - range) % range;  // 2^64 mod range: the first values would come once too often
  uint64_t drawn = bits64();
  while (drawn < surplus) drawn = bits64();
  return static_cast<int64_t>(drawn % range);
}

double Random::normal() {  // Box-Muller; 1 - uniform() is never zero
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

bool Random::chance(double probability) {
  return uniform() < probability;
}

}  // namespace lockstep::base
