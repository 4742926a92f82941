// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/duplicates.h"

#include <algorithm>
#include <tuple>

#include "lockstep/base/text.h"
#include "lockstep/shards/shard_set.h"

namespace lockstep::sources {
namespace {

struct HashedSample {
  uint64_t hash = 0;
  int32_t label = 0;
  uint32_t part = 0;  // position in the list of sets
  uint64_t id = 0;

  bool operator<(const HashedSample& other) const {
    return std::tie(hash, part, id) < std::tie(other.hash, other.part, other.id);
  }
};

// "train/00000012-cat" -> "train: pets/cat.jpg": a key begins with the sample's number in the source (key_of).
std::string name_in_source(const std::string& sample, const std::vector<SourceSample>& source) {
  const size_t slash = sample.find('/');
  const auto number = static_cast<size_t>(std::stoll(sample.substr(slash + 1)));
  return base::text(sample.substr(0, slash), ": ", number < source.size() ? source[number].name : "?");
}

}  // namespace

Duplicates find_duplicates(const base::Path& folder, const std::vector<Part>& parts,
                           const std::vector<SourceSample>& source) {
  std::vector<shards::ShardSet> sets;
  std::vector<HashedSample> entries;
  for (const Part part : parts) {
    const shards::ShardSet& set = sets.emplace_back(folder / kPartNames[static_cast<size_t>(part)]);
    for (int64_t id = 0; id < set.size(); ++id) {
      const auto position = set.position_of(id);
      const shards::IndexedSample sample = set.index(position.shard).sample(position.sample);
      if (sample.content_hash == 0) continue;
      entries.push_back(
          {sample.content_hash, sample.label, static_cast<uint32_t>(sets.size() - 1), static_cast<uint64_t>(id)});
    }
  }
  std::sort(entries.begin(), entries.end());
  Duplicates all;
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && entries[end].hash == entries[begin].hash) ++end;
    if (end - begin < 2) continue;
    DuplicateGroup group;
    for (size_t i = begin; i < end; ++i) {
      const shards::ShardSet& set = sets[entries[i].part];
      const auto position = set.position_of(static_cast<int64_t>(entries[i].id));
      group.samples.push_back(base::text(kPartNames[static_cast<size_t>(parts[entries[i].part])], "/",
                                         set.index(position.shard).sample(position.sample).key));
      group.across_parts |= entries[i].part != entries[begin].part;
      group.across_labels |= entries[i].label != entries[begin].label;
    }
    std::sort(group.samples.begin(), group.samples.end());
    for (const auto& sample : group.samples) group.names.push_back(name_in_source(sample, source));
    ++all.num_groups;
    all.num_samples += static_cast<int64_t>(end - begin) - 1;
    all.num_across_parts += group.across_parts;
    all.num_across_labels += group.across_labels;
    all.groups.push_back(std::move(group));
  }
  std::sort(all.groups.begin(), all.groups.end(), [](const DuplicateGroup& a, const DuplicateGroup& b) {
    return std::tuple(!a.across_parts, !a.across_labels, a.samples.front()) <
           std::tuple(!b.across_parts, !b.across_labels, b.samples.front());
  });
  return all;
}

base::Json Duplicates::to_json(size_t most_groups) const {
  base::Json all = base::Json::object();
  all["groups"] = num_groups;
  all["samples_beyond_the_first"] = num_samples;
  all["groups_across_parts"] = num_across_parts;
  all["groups_across_labels"] = num_across_labels;
  base::Json list = base::Json::array();
  for (size_t i = 0; i < groups.size() && i < most_groups; ++i) {
    const DuplicateGroup& group = groups[i];
    base::Json one = base::Json::object();
    one["samples"] = base::Json::array_of(group.samples);
    one["names"] = base::Json::array_of(group.names);
    one["across_parts"] = group.across_parts;
    one["across_labels"] = group.across_labels;
    list.push_back(std::move(one));
  }
  all["first"] = std::move(list);
  return all;
}

std::string Duplicates::to_text() const {
  std::string out;
  for (const auto& group : groups) {
    std::vector<std::string> words;
    words.reserve(group.names.size());
    for (const auto& name : group.names) words.push_back(base::quote_json(name));
    out += base::text(base::join(words, "  "), group.across_parts ? "  (leakage)" : "",
                      group.across_labels ? "  (two labels)" : "", "\n");
  }
  return out;
}

}  // namespace lockstep::sources
