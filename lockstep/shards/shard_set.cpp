// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/shard_set.h"

#include <sys/stat.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::shards {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr base::JsonLimits kListLimits{.max_bytes = size_t{256} << 20};  // a million shards

// A list is a file like any other: a name in it must not lead out of its folder.
std::string shard_name(const base::Json& url) {
  const std::string& name = url.as_string();
  const bool plain = name.size() > 4 && name.ends_with(".tar") && name.find('/') == std::string::npos &&
                     name.front() != '.' && name.find('\0') == std::string::npos;
  if (!plain)
    throw Error(Blame::user, text(url.where(), ": ", base::quote_json(name), " is no NAME.tar beside the list"));
  return name.substr(0, name.size() - 4);
}

}  // namespace

void write_shard_list(const base::Path& folder, const ShardList& list) {
  base::Json all = base::Json::object();
  all["__kind__"] = "wids-shard-index-v1";
  all["wids_version"] = 1;
  all["name"] = list.name;
  all["classes"] = base::Json::array_of(list.classes);
  if (list.most_objects > 0) all["most_objects"] = list.most_objects;
  base::Json shards = base::Json::array();
  for (const auto& shard : list.shards) {
    base::Json row = base::Json::object();
    row["url"] = shard.name + ".tar";
    row["nsamples"] = shard.num_samples;
    row["filesize"] = shard.tar_bytes;
    row["crc32c"] = int64_t{shard.tar_crc32c};
    shards.push_back(std::move(row));
  }
  all["shardlist"] = std::move(shards);
  base::write_json(folder / kShardList, all);
}

ShardList read_shard_list(const base::Path& folder) {
  const base::Json all = base::read_json(folder / kShardList, kListLimits);
  ShardList list{.name = all.string_or("name", "")};
  list.most_objects = all.int_or("most_objects", 0);
  for (const auto& name : all.at("classes").items()) list.classes.push_back(name.as_string());
  for (const auto& row : all.at("shardlist").items()) {
    list.shards.push_back({shard_name(row.at("url")), row.at("nsamples").as_int(), row.at("filesize").as_int(),
                           static_cast<uint32_t>(row.at("crc32c").as_int())});
  }
  if (list.shards.empty()) throw Error(Blame::user, text((folder / kShardList).string(), ": it names no shard"));
  return list;
}

ShardIndex open_shard(const base::Path& folder, const ShardSummary& shard) {
  ShardIndex index(folder / (shard.name + ".sxi"));
  check_listed(index, folder, shard);
  return index;
}

void check_listed(const ShardIndex& index, const base::Path& folder, const ShardSummary& shard) {
  constexpr const char* kFix = "copy the folder again, or make the shard again: lockstep prep --repair";
  const base::Path path = folder / (shard.name + ".tar");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw Error(Blame::user, text(path.string(), ": the shard is missing"), kFix);
  if (index.size() != shard.num_samples || index.tar_bytes() != shard.tar_bytes || status.st_size != shard.tar_bytes) {
    throw Error(Blame::user,
                text(path.string(), ": ", status.st_size, " bytes; list and index say ", shard.tar_bytes, " and ",
                     index.tar_bytes(), " with ", shard.num_samples, " and ", index.size(), " samples"),
                kFix);
  }
  if (index.tar_crc32c() != shard.tar_crc32c) {
    throw Error(Blame::user, text(path.string(), ": shard and index are of another dataset than the list (CRC-32C)"),
                kFix);
  }
}

ShardSet::ShardSet(const base::Path& folder) : folder_(folder), list_(read_shard_list(folder)) {
  for (const auto& shard : list_.shards) {
    indexes_.push_back(open_shard(folder_, shard));
    begins_.push_back(begins_.back() + indexes_.back().size());
  }
}

base::Path ShardSet::tar_path(int64_t shard) const {
  return folder_ / (list_.shards[static_cast<size_t>(shard)].name + ".tar");
}

ShardSet::Position ShardSet::position_of(int64_t id) const {
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), id);
  const int64_t shard = behind - begins_.begin() - 1;
  return {shard, id - begins_[static_cast<size_t>(shard)]};
}

}  // namespace lockstep::shards
