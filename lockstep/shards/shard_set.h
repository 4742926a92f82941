// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/shards/shard_index.h"
#include "lockstep/shards/shard_writer.h"

namespace lockstep::shards {

constexpr const char* kShardList = "shards.json";  // names the shards of a folder; wids reads it too

struct ShardList {
  std::string name;                       // of the dataset and its part, "pets train"
  std::vector<std::string> classes = {};  // label -> name
  std::vector<ShardSummary> shards = {};
  int64_t most_objects = 0;  // that a sample's .json lists, without crowds; 0: none, or nobody has counted

  bool operator==(const ShardList&) const = default;
};

void write_shard_list(const base::Path& folder, const ShardList& list);
// User error that names line and column, or the file that is missing.
ShardList read_shard_list(const base::Path& folder);

// One stat and one map, nothing a sample. User error: a missing or damaged file, a tar file of another length than its
// index says, an index of another dataset.
ShardIndex open_shard(const base::Path& folder, const ShardSummary& shard);
// What open_shard checks, for an index that is read in another way.
void check_listed(const ShardIndex& index, const base::Path& folder, const ShardSummary& shard);

// A folder of shards, opened: its list and every index, in order. Sample ids count through the shards.
class ShardSet {
 public:
  explicit ShardSet(const base::Path& folder);

  const base::Path& folder() const { return folder_; }
  const std::vector<std::string>& classes() const { return list_.classes; }
  int64_t most_objects() const { return list_.most_objects; }
  int64_t size() const { return begins_.back(); }
  int64_t num_shards() const { return static_cast<int64_t>(indexes_.size()); }
  const ShardIndex& index(int64_t shard) const { return indexes_[static_cast<size_t>(shard)]; }
  base::Path tar_path(int64_t shard) const;

  struct Position {
    int64_t shard = 0;
    int64_t sample = 0;  // in the shard
  };
  Position position_of(int64_t id) const;  // REQUIRES: 0 <= id < size()

 private:
  base::Path folder_;
  ShardList list_;
  std::vector<ShardIndex> indexes_;
  std::vector<int64_t> begins_ = {0};  // id of each shard's first sample, then the size
};

}  // namespace lockstep::shards
