// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/shards/shard_index.h"

namespace lockstep::shards {

// A shard's files: NAME.tar, NAME.idx (DALI), NAME.sxi (ours).
struct NewMember {
  std::string extension;  // lower case, without the first dot: "jpg", "cls", "seg.png"
  std::string_view bytes;
};

// What is known of a sample besides its members' bytes.
struct NewSample {
  std::string_view key;  // unique in the dataset; no dot in its last part
  int32_t label = kNoLabel;
  uint64_t content_hash = 0;
};

struct ShardSummary {
  std::string name;  // "shard-000000"
  int64_t num_samples = 0;
  int64_t tar_bytes = 0;
  uint32_t tar_crc32c = 0;

  bool operator==(const ShardSummary&) const = default;
};

// Writes one shard. Nothing stands under the final names before finish(), which puts the tar file there first and its
// index last; each appears whole or not at all. The same bytes for the same samples.
class ShardWriter {
 public:
  ShardWriter(base::Path folder, std::string name);
  ~ShardWriter();  // without finish(): what was written is removed
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // The members lie side by side in this order; the first image among them ("jpg", "jpeg", "png") is THE image, whose
  // header is read for the index. User error for a name that cannot stand in a shard, a member of 8 GiB, an image whose
  // header cannot be read.
  void add(const NewSample& sample, const std::vector<NewMember>& members);
  // REQUIRES: one sample at least
  ShardSummary finish();

 private:
  int64_t append(std::string_view bytes);
  void pad_to(int64_t multiple);
  void flush();

  base::Path folder_;
  std::string name_;
  base::Path temporary_;
  std::optional<base::FileWriter> file_;
  std::string buffer_;
  int64_t written_ = 0;
  uint32_t crc32c_ = 0;
  ShardIndexBuilder index_;
  std::string dali_;  // the lines of the .idx file
};

}  // namespace lockstep::shards
