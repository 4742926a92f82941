// sources: lockstep/base/*.cpp lockstep/shards/shard_index.cpp lockstep/image/mask.cpp lockstep/image/runs.cpp lockstep/image/augment*.cpp lockstep/image/decode*.cpp lockstep/image/exif*.cpp lockstep/image/jpeg_*.cpp lockstep/image/png_*.cpp lockstep/image/policy.cpp lockstep/image/re*.cpp lockstep/image/tiff_*.cpp lockstep/image/webp_*.cpp libraries: -ljpeg -lpng -ltiff -lwebp
// SPDX-License-Identifier: Apache-2.0
// Any bytes give an index all of whose views lie within it, or a user error. Checksums are made right first: they stop
// accidents, not attacks, and the checks behind them must hold on their own.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/shards/shard_index.h"

namespace {

using namespace lockstep;

std::vector<uint64_t> with_right_checksums(const uint8_t* bytes, size_t size) {
  std::vector<uint64_t> words((size + 7) / 8);
  if (size > 0) std::memcpy(words.data(), bytes, size);
  if (size < 64) return words;
  auto* at = reinterpret_cast<uint8_t*>(words.data());
  std::memcpy(at, "LSXI0001", 8);
  const uint32_t body = base::crc32c(std::as_bytes(std::span(at + 64, size - 64)));
  std::memcpy(at + 52, &body, 4);
  const uint32_t header = base::crc32c(std::as_bytes(std::span(at, 56)));
  std::memcpy(at + 56, &header, 4);
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::vector<uint64_t> words = with_right_checksums(bytes, size);
  try {
    const shards::ShardIndex index(std::as_bytes(std::span(words)).first(size), "fuzz.sxi");
    uint64_t sum = 0;
    for (int64_t i = 0; i < index.size(); ++i) {
      const shards::IndexedSample sample = index.sample(i);
      for (const char c : sample.key) sum += static_cast<unsigned char>(c);
      for (const uint32_t row : sample.row_offsets) sum += row;
      for (int64_t k = 0; k < sample.num_members; ++k) {
        const shards::IndexedMember member = index.member(i, k);
        if (member.offset < 0 || member.size < 0 || member.offset + member.size > index.tar_bytes()) std::abort();
        for (const char c : member.extension) sum += static_cast<unsigned char>(c);
      }
      if (sample.image && sample.image->member >= sample.num_members) std::abort();
    }
    if (sum == 1) return 0;  // reading must not be optimised away
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
