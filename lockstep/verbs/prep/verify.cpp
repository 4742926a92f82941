// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/verify.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/decode.h"
#include "lockstep/data/ordered_work.h"
#include "lockstep/data/shard_set.h"
#include "lockstep/data/source.h"
#include "lockstep/data/tar.h"
#include "lockstep/site/cores.h"
#include "lockstep/verbs/prep/folder_state.h"

namespace lockstep::verbs {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;
using Faults = std::vector<std::string>;

base::Json dataset_of(const Path& folder) {
  return base::read_json(folder / kDatasetComplete, {.max_bytes = size_t{1} << 30});
}

std::vector<Path> shard_folders(const Path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / data::kShardList, error)) return {folder};
  std::vector<Path> found;
  for (const auto part : data::kPartNames) {
    if (std::filesystem::exists(folder / part / data::kShardList, error)) found.push_back(folder / part);
  }
  const bool is_complete = std::filesystem::exists(folder / kDatasetComplete, error);
  const bool is_ours =
      is_complete ? dataset_of(folder).contains("parts") : std::filesystem::exists(folder / kDatasetBegun, error);
  if (!found.empty() || is_ours) return found;  // check_dataset names what is missing of ours
  throw Error(Blame::user, text(folder.string(), ": no folder of shards (", data::kShardList, ") in it"),
              "give the folder that lockstep prep SOURCE --to DIR wrote");
}

// What the dataset says of itself against its folders of shards.
void check_dataset(const Path& folder, Faults& faults) {
  std::error_code error;
  const std::string path = (folder / kDatasetComplete).string();
  if (!std::filesystem::exists(path, error)) {
    if (std::filesystem::exists(folder / kDatasetBegun, error))
      faults.push_back(text((folder / kDatasetBegun).string(), ": the dataset is not complete; prepare it again"));
    return;
  }
  const base::Json dataset = dataset_of(folder);
  base::Sha256 fingerprint;
  for (const auto& part : dataset.at("parts").members()) {
    if (std::find(std::begin(data::kPartNames), std::end(data::kPartNames), part.key) == std::end(data::kPartNames)) {
      faults.push_back(text(path, ": no part is called ", base::quote_json(part.key)));
      return;
    }
    if (!std::filesystem::exists(folder / part.key / data::kShardList, error)) {
      faults.push_back(text((folder / part.key / data::kShardList).string(), ": missing; ", path, " tells of it"));
      return;
    }
    for (const auto& shard : data::read_shard_list(folder / part.key).shards) {
      fingerprint.update(text(part.key, "/", shard.name, " ", shard.tar_bytes, " ", shard.tar_crc32c, "\n"));
    }
  }
  if (fingerprint.hex() != dataset.at("fingerprint").as_string())
    faults.push_back(text(path, ": the lists of shards are not those of this dataset (fingerprint)"));
}

// The tar file against the index, header by header, and DALI's lines against both.
void check_shard(const data::ShardSet& set, int64_t shard, const base::MappedFile& tar, Faults& faults) {
  const data::ShardIndex& index = set.index(shard);
  const std::string path = set.tar_path(shard).string();
  const uint32_t sum = base::crc32c(tar.bytes());
  if (sum != index.tar_crc32c()) faults.push_back(text(path, ": the file has changed since it was written (CRC-32C)"));
  std::string dali = text("v1.2 ", index.size(), "\n");
  data::TarReader reader(tar.bytes(), path);
  for (int64_t i = 0; i < index.size(); ++i) {
    const data::IndexedSample sample = index.sample(i);
    for (int64_t k = 0; k < sample.num_members; ++k) {
      const data::IndexedMember member = index.member(i, k);
      const std::string name = text(sample.key, ".", member.extension);
      const auto found = reader.next();
      if (!found || found->name != name || found->offset != member.offset || found->size != member.size) {
        faults.push_back(text(path, "/", name, ": the index tells another place than the tar file"));
        return;
      }
      dali += text(k == 0 ? "" : " ", member.extension, " ", member.offset, " ", member.size, " ", name);
    }
    dali += "\n";
  }
  if (reader.next()) faults.push_back(text(path, ": members behind the last one of the index"));
  Path beside = set.tar_path(shard);
  if (base::read_file(beside.replace_extension(".idx")) != dali) {
    faults.push_back(text(beside.string(), ": does not tell what the tar file holds"));
  }
}

void check_sample(const data::ShardSet& set, const data::ShardSet::Place& place, const base::MappedFile& tar,
                  Faults& faults) {
  const data::ShardIndex& index = set.index(place.shard);
  const data::IndexedSample sample = index.sample(place.sample);
  const auto bytes_of = [&](const data::IndexedMember& member) {
    return tar.bytes().subspan(static_cast<size_t>(member.offset), static_cast<size_t>(member.size));
  };
  const std::string name = text(set.tar_path(place.shard).string(), "/", sample.key);
  for (int64_t k = 0; k < sample.num_members; ++k) {
    const data::IndexedMember member = index.member(place.sample, k);
    if (base::crc32c(bytes_of(member)) != member.crc32c) {
      faults.push_back(text(name, ".", member.extension, ": the bytes have changed since they were written (CRC-32C)"));
      return;
    }
  }
  if (const auto label = index.find(place.sample, "cls")) {
    const auto bytes = bytes_of(*label);
    const std::string_view words(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (words != std::to_string(sample.label) || sample.label >= static_cast<int64_t>(set.classes().size())) {
      faults.push_back(text(name, ".cls: not the label of the index, or no class of the list"));
    }
  }
  if (!sample.picture) return;
  const auto file = bytes_of(index.member(place.sample, sample.picture->member));
  if (data::read_image_info(file) != sample.picture->info)
    faults.push_back(text(name, ": a picture of another size than the index says"));
  (void)data::decode_image(file);
}

// Runs a check; what is wrong with the input becomes a fault.
template <class Check>
Faults faults_of(const std::string& name, const Check& check) {
  Faults faults;
  try {
    check(faults);
  } catch (const Error& error) {
    if (error.blame() != Blame::user) throw;
    faults.push_back(text(name, ": ", error.what()));
  }
  return faults;
}

// One folder of shards.
class PartVerifier {
 public:
  PartVerifier(const Path& part, int64_t threads) : set_(part), threads_(threads) {
    for (int64_t i = 0; i < set_.num_shards(); ++i) tars_.emplace_back(set_.tar_path(i));
  }

  void run(VerifyResult& result, std::unordered_set<std::string>& keys,
           const std::function<void(int64_t, int64_t)>& progress) const {
    const auto collect = [&](int64_t, Faults&& faults) {
      result.faults.insert(result.faults.end(), faults.begin(), faults.end());
    };
    data::work_in_order<Faults>(
        set_.num_shards(), {threads_, threads_},
        [this](int64_t shard) {
          return faults_of(set_.tar_path(shard).string(),
                           [&](Faults& faults) { check_shard(set_, shard, tar(shard), faults); });
        },
        collect);
    data::work_in_order<Faults>(
        set_.size(), {threads_, threads_ * 16},
        [this](int64_t id) {
          return faults_of(name_of(id), [&](Faults& faults) {
            check_sample(set_, set_.place_of(id), tar(set_.place_of(id).shard), faults);
          });
        },
        [&](int64_t id, Faults&& faults) {
          collect(id, std::move(faults));
          if (!keys.insert(key_of_sample(id)).second) {
            result.faults.push_back(text(name_of(id), ": this key stands elsewhere in the dataset as well"));
          }
          if (progress) progress(id + 1, set_.size());
        });
    result.num_shards += set_.num_shards();
    result.num_samples += set_.size();
    for (const auto& file : tars_) result.num_bytes += static_cast<int64_t>(file.bytes().size());
  }

 private:
  const base::MappedFile& tar(int64_t shard) const { return tars_[static_cast<size_t>(shard)]; }
  std::string key_of_sample(int64_t id) const {
    const auto place = set_.place_of(id);
    return std::string(set_.index(place.shard).sample(place.sample).key);
  }
  std::string name_of(int64_t id) const {
    return text(set_.tar_path(set_.place_of(id).shard).string(), "/", key_of_sample(id));
  }

  data::ShardSet set_;
  int64_t threads_;
  std::vector<base::MappedFile> tars_;
};

}  // namespace

VerifyResult verify(const Path& folder, int64_t threads, const std::function<void(int64_t, int64_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  VerifyResult result;
  std::unordered_set<std::string> keys;
  const std::vector<Path> parts = shard_folders(folder);
  result.faults = faults_of(folder.string(), [&](Faults& faults) { check_dataset(folder, faults); });
  for (const auto& part : parts) {
    try {
      PartVerifier(part, threads > 0 ? threads : site::usable_cores()).run(result, keys, progress);
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      result.faults.emplace_back(error.what());
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

}  // namespace lockstep::verbs
