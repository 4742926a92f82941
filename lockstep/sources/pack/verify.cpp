// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/verify.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_set>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/shards/tar.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/pack/ordered_work.h"
#include "lockstep/sources/pack/plain_file.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;
using Faults = std::vector<std::string>;

base::Json read_dataset(const Path& folder) {
  return base::read_json(folder / kDatasetComplete, {.max_bytes = size_t{1} << 30});
}

std::vector<Path> shard_folders(const Path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / shards::kShardList, error)) return {folder};
  std::vector<Path> found;
  for (const auto part : kPartNames) {
    if (std::filesystem::exists(folder / part / shards::kShardList, error)) found.push_back(folder / part);
  }
  const bool is_complete = std::filesystem::exists(folder / kDatasetComplete, error);
  const bool is_ours =
      is_complete ? read_dataset(folder).contains("parts") : std::filesystem::exists(folder / kDatasetBegun, error);
  if (!found.empty() || is_ours) return found;  // check_dataset names what is missing of ours
  throw Error(Blame::user, text(folder.string(), ": no folder of shards (", shards::kShardList, ") in it"),
              "give the folder that lockstep prep SOURCE --to DIR wrote");
}

// What the dataset says of itself against its folders of shards.
void check_dataset(const Path& folder, Faults& faults) {
  std::error_code error;
  const std::string path = (folder / kDatasetComplete).string();
  if (!std::filesystem::exists(path, error)) {
    if (std::filesystem::exists(folder / kDatasetBegun, error)) {
      faults.push_back(text((folder / kDatasetBegun).string(), ": the dataset is not complete; prepare it again"));
    } else if (!std::filesystem::exists(folder / shards::kShardList, error)) {  // not one part alone
      faults.push_back(text(path, ": missing"));
    }
    return;
  }
  const base::Json dataset = read_dataset(folder);
  base::Sha256 fingerprint;
  for (const auto& part : dataset.at("parts").members()) {
    if (std::find(std::begin(kPartNames), std::end(kPartNames), part.key) == std::end(kPartNames)) {
      faults.push_back(text(path, ": no part is called ", base::quote_json(part.key)));
      return;
    }
    if (!std::filesystem::exists(folder / part.key / shards::kShardList, error)) {
      faults.push_back(text((folder / part.key / shards::kShardList).string(), ": missing; ", path, " tells of it"));
      return;
    }
    const shards::ShardList list = shards::read_shard_list(folder / part.key);
    int64_t num_samples = 0;
    for (const auto& shard : list.shards) {
      fingerprint.update(text(part.key, "/", shard.name, " ", shard.tar_bytes, " ", shard.tar_crc32c, "\n"));
      num_samples += shard.num_samples;
    }
    if (base::Json::array_of(list.classes) != dataset.at("classes"))
      faults.push_back(text((folder / part.key / shards::kShardList).string(), ": other classes than in ", path));
    if (part.value.at("samples").as_int() != num_samples)
      faults.push_back(text(path, ": it tells of ", part.value.at("samples").as_int(), " samples in ", part.key,
                            ", the list of ", num_samples));
  }
  if (fingerprint.hex() != dataset.at("fingerprint").as_string())
    faults.push_back(text(path, ": the lists of shards are not those of this dataset (fingerprint)"));
}

struct OpenShard {
  std::string path;                    // of the tar file
  std::vector<std::byte> index_bytes;  // read, not mapped: see PlainFile
  shards::ShardIndex index;
  PlainFile tar;

  std::vector<std::byte> bytes_of(const shards::IndexedMember& member) const {
    return tar.read(member.offset, member.size);
  }
  std::string name_of(int64_t sample) const { return text(path, "/", index.sample(sample).key); }
};

OpenShard read_shard(const Path& folder, const shards::ShardSummary& shard) {
  const Path sxi = folder / (shard.name + ".sxi"), tar = folder / (shard.name + ".tar");
  const PlainFile file(sxi);
  std::vector<std::byte> bytes = file.read(0, file.size());
  shards::ShardIndex index(bytes, sxi.string());
  shards::check_listed(index, folder, shard);
  return {tar.string(), std::move(bytes), std::move(index), PlainFile(tar)};
}

// The tar file against the index, header by header, and DALI's lines against both.
void check_shard(const OpenShard& shard, Faults& faults) {
  const shards::ShardIndex& index = shard.index;
  if (shard.tar.crc32c() != index.tar_crc32c())
    faults.push_back(text(shard.path, ": the file has changed since it was written (CRC-32C)"));
  std::string dali = text("v1.2 ", index.size(), "\n");
  int64_t at = 0;
  for (int64_t i = 0; i < index.size(); ++i) {
    const shards::IndexedSample sample = index.sample(i);
    for (int64_t k = 0; k < sample.num_members; ++k) {
      const shards::IndexedMember member = index.member(i, k);
      const std::string name = text(sample.key, ".", member.extension);
      const auto written = shards::ustar_header(name, member.size);
      const auto header = shard.tar.read(at, shards::kTarBlock);
      if (member.offset != at + shards::kTarBlock || std::memcmp(header.data(), written.data(), written.size()) != 0) {
        faults.push_back(text(shard.path, "/", name, ": the index tells another place than the tar file"));
        return;
      }
      at = member.offset + shards::padded_to_block(member.size);
      dali += text(k == 0 ? "" : " ", member.extension, " ", member.offset, " ", member.size, " ", name);
    }
    dali += "\n";
  }
  if (!shard.tar.has_zeros_from(at)) faults.push_back(text(shard.path, ": members behind the last one of the index"));
  Path beside = shard.path;
  if (base::read_file(beside.replace_extension(".idx")) != dali) {
    faults.push_back(text(beside.string(), ": does not tell what the tar file holds"));
  }
}

void check_sample(const OpenShard& shard, int64_t position, int64_t num_classes, Faults& faults) {
  const shards::IndexedSample sample = shard.index.sample(position);
  const std::string name = shard.name_of(position);
  for (int64_t k = 0; k < sample.num_members; ++k) {
    const shards::IndexedMember member = shard.index.member(position, k);
    if (base::crc32c(shard.bytes_of(member)) != member.crc32c) {
      faults.push_back(text(name, ".", member.extension, ": the bytes have changed since they were written (CRC-32C)"));
      return;
    }
  }
  if (const auto label = shard.index.find(position, "cls")) {
    const auto bytes = shard.bytes_of(*label);
    const std::string_view words(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (words != std::to_string(sample.label) || sample.label >= num_classes)
      faults.push_back(text(name, ".cls: not the label of the index, or no class of the list"));
  }
  if (!sample.image) return;
  const auto file = shard.bytes_of(shard.index.member(position, sample.image->member));
  if (image::read_image_info(file) != sample.image->info)
    faults.push_back(text(name, ": an image of another size than the index says"));
  (void)image::decode_image(file);
}

// Runs a check; what is wrong with the input becomes a fault, and so does what the disk does not give.
template <class Check>
Faults collect_faults(const std::string& name, const Check& check) {
  Faults faults;
  try {
    check(faults);
  } catch (const Error& error) {
    if (error.blame() == Blame::bug) throw;
    faults.push_back(text(name, ": ", error.what()));
  }
  return faults;
}

// Tar files that a reader of *.tar would take and the list does not know.
void check_strays(const Path& folder, const shards::ShardList& list, Faults& faults) {
  std::set<std::string> known;
  for (const auto& shard : list.shards) known.insert(shard.name + ".tar");
  std::error_code error;
  std::set<std::string> strays;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".tar" && name.front() != '.' && !known.contains(name)) strays.insert(name);
  }
  for (const auto& name : strays) faults.push_back(text((folder / name).string(), ": it stands in no list"));
}

// One folder of shards. As many shards are open at a time as there are threads: each is read once from the disk and
// then from the page cache, and no more than these are held in memory.
class PartVerifier {
 public:
  PartVerifier(const Path& folder, int64_t threads, VerifyResult& result, std::unordered_set<std::string>& keys)
      : folder_(folder), list_(shards::read_shard_list(folder)), threads_(threads), result_(result), keys_(keys) {
    for (const auto& shard : list_.shards) total_ += shard.num_samples;
  }

  void run(const std::function<void(int64_t, int64_t)>& progress) {
    check_strays(folder_, list_, result_.faults);
    const size_t group = static_cast<size_t>(threads_);
    for (size_t first = 0; first < list_.shards.size(); first += group) {
      open(std::span(list_.shards).subspan(first, std::min(group, list_.shards.size() - first)));
      check_shards();
      check_samples(progress);
    }
  }

 private:
  struct Position {
    const OpenShard* shard;
    int64_t sample;
  };

  // Damaged ones become faults and are left out.
  void open(std::span<const shards::ShardSummary> shards) {
    samples_.clear();
    open_.clear();
    open_.reserve(shards.size());  // samples_ points into it
    for (const auto& shard : shards) {
      try {
        open_.push_back(read_shard(folder_, shard));
      } catch (const Error& error) {
        if (error.blame() == Blame::bug) throw;
        result_.faults.emplace_back(error.what());
        continue;
      }
      for (int64_t i = 0; i < shard.num_samples; ++i) samples_.push_back({&open_.back(), i});
      ++result_.num_shards;
      result_.num_bytes += shard.tar_bytes;
    }
  }

  void check_shards() {
    work_in_order<Faults>(
        static_cast<int64_t>(open_.size()), {threads_, threads_},
        [this](int64_t i) {
          const OpenShard& shard = open_[static_cast<size_t>(i)];
          return collect_faults(shard.path, [&](Faults& faults) { check_shard(shard, faults); });
        },
        [this](int64_t, Faults&& faults) { append(faults); });
  }

  void check_samples(const std::function<void(int64_t, int64_t)>& progress) {
    const auto num_classes = static_cast<int64_t>(list_.classes.size());
    work_in_order<Faults>(
        static_cast<int64_t>(samples_.size()), {threads_, threads_ * 16},
        [&](int64_t i) {
          const Position& at = samples_[static_cast<size_t>(i)];
          return collect_faults(at.shard->name_of(at.sample),
                                [&](Faults& faults) { check_sample(*at.shard, at.sample, num_classes, faults); });
        },
        [&](int64_t i, Faults&& faults) {
          append(faults);
          const auto [shard, sample] = samples_[static_cast<size_t>(i)];
          if (!keys_.emplace(shard->index.sample(sample).key).second)
            append({text(shard->name_of(sample), ": this key stands elsewhere in the dataset as well")});
          ++result_.num_samples;
          if (progress) progress(++done_, total_);
        });
  }

  void append(const Faults& faults) { result_.faults.insert(result_.faults.end(), faults.begin(), faults.end()); }

  Path folder_;
  shards::ShardList list_;
  int64_t threads_;
  VerifyResult& result_;
  std::unordered_set<std::string>& keys_;
  int64_t total_ = 0, done_ = 0;  // samples
  std::vector<OpenShard> open_;
  std::vector<Position> samples_;  // of the open shards
};

}  // namespace

std::vector<std::string> shard_faults(const Path& folder, const shards::ShardSummary& shard) {
  return collect_faults((folder / shard.name).string(),
                        [&](Faults& faults) { check_shard(read_shard(folder, shard), faults); });
}

VerifyResult verify(const Path& folder, int64_t threads, const std::function<void(int64_t, int64_t)>& progress) {
  const double start = base::steady_seconds();
  VerifyResult result;
  std::unordered_set<std::string> keys;
  const std::vector<Path> parts = shard_folders(folder);
  result.faults = collect_faults(folder.string(), [&](Faults& faults) { check_dataset(folder, faults); });
  for (const auto& part : parts) {
    try {
      PartVerifier(part, threads > 0 ? threads : site::usable_cores(), result, keys).run(progress);
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      result.faults.emplace_back(error.what());
    }
  }
  result.seconds = base::steady_seconds() - start;
  return result;
}

base::Json VerifyResult::to_json() const {
  base::Json all = base::Json::object();
  all["shards"] = num_shards;
  all["samples"] = num_samples;
  all["bytes"] = num_bytes;
  all["faults"] = base::Json::array_of(faults);
  all["seconds"] = seconds;
  return all;
}

}  // namespace lockstep::sources
