// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/shards/tar.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/storage.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/pack/pack.h"
#include "lockstep/sources/pack/shard_note.h"

namespace lockstep::sources {
namespace {

constexpr int64_t kProbes = 64;
constexpr double kMaxSeconds = 10;
constexpr int64_t kIndexBytes = 200;  // of .sxi and .idx, a sample

struct Probed {
  int64_t count = 0;
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
  int64_t bytes_listed = 0;     // of the samples that could be read, as the source lists them: their images, mostly
  int64_t members_further = 0;  // beyond the first
  int64_t num_read = 0;
  double seconds = 0;
  std::vector<Refused> refused;
};

Probed probe(const Source& source, const ImageOptions& options, double max_seconds) {
  const double start = base::steady_seconds();
  const auto count = static_cast<int64_t>(source.samples().size());
  const int64_t probes = std::min(count, kProbes);
  Probed all;
  for (int64_t i = 0; i < probes && (max_seconds <= 0 || all.seconds < max_seconds); ++i) {
    const int64_t id = i * count / probes;
    try {
      const FinishedSample sample = finish_sample(source.load(id), options);
      all.bytes_in += sample.bytes_in;
      for (const auto& member : sample.members) all.bytes_out += static_cast<int64_t>(member.bytes.size());
      all.bytes_listed += source.samples()[static_cast<size_t>(id)].bytes;
      all.members_further += static_cast<int64_t>(sample.members.size()) - 1;
      ++all.num_read;
    } catch (const base::Error& error) {
      if (error.blame() != base::Blame::user) throw;
      all.refused.push_back({source.samples()[static_cast<size_t>(id)].name, error.what()});
    }
    ++all.count;
    all.seconds = base::steady_seconds() - start;
  }
  return all;
}

double estimate_growth(const Probed& probed) {
  if (probed.bytes_in == 0) return 1;
  return static_cast<double>(probed.bytes_out) / static_cast<double>(probed.bytes_in);
}

// Of all samples, masks, annotations and their headers included, which the source does not list.
void expect_bytes(const Source& source, const PackRequest& request, const Probed& probed, PackForecast& all) {
  const auto times = [&](int64_t bytes) {
    return probed.bytes_listed > 0 ? static_cast<double>(bytes) / static_cast<double>(probed.bytes_listed) : 1;
  };
  int64_t listed = 0;
  for (const auto& sample : source.samples()) listed += sample.bytes;
  all.bytes_in = static_cast<int64_t>(static_cast<double>(listed) * times(probed.bytes_in));
  for (const auto& shard : plan_shards(source, request, times(probed.bytes_out))) all.bytes_out += shard.expected_bytes;
  constexpr int64_t kAround = shards::kTarBlock + shards::kTarBlock / 2;  // a header, and half a block to its end
  all.bytes_out += all.num_samples * kAround * probed.members_further / std::max<int64_t>(probed.num_read, 1);
  all.bytes_out += all.num_samples * kIndexBytes;
}

base::Path existing_parent(base::Path folder) {
  std::error_code error;
  folder = std::filesystem::absolute(folder, error);
  while (folder.has_relative_path() && !std::filesystem::exists(folder, error)) folder = folder.parent_path();
  return folder;
}

}  // namespace

double expected_growth(const Source& source, const ImageOptions& options) {
  return options.max_side > 0 ? estimate_growth(probe(source, options, 0)) : 1;
}

namespace {

// As mkdir or open would fail, had it been tried.
void check_writable(const base::Path& folder) {
  const base::Path parent = existing_parent(folder);
  std::error_code error;
  if (!std::filesystem::is_directory(parent, error)) {
    errno = ENOTDIR;
  } else if (::access(parent.c_str(), W_OK | X_OK) == 0) {
    return;
  }
  base::throw_errno(base::text("cannot write to ", parent.string()),
                    base::text("choose a folder you may write to; ls -ld ", base::shell_path(parent.string())));
}

// Whether the folder holds it all. REQUIRES: check_request and check_samples have been content.
bool check_target(const PackRequest& request, const OpenedSource& opened) {
  if (!is_complete(request.folder, describe(request, opened))) return check_writable(request.folder), false;
  check_shards_are_there(request.folder,
                         base::read_json(request.folder / kDatasetComplete, {.max_bytes = size_t{1} << 30}));
  return true;
}

// Without what an earlier session has finished.
void leave_out_finished(const base::Path& folder, const std::vector<PlannedShard>& shards, PackForecast& all) {
  int64_t planned = 0, left = 0;
  for (const auto& shard : shards) {
    const bool is_there = finished_before(folder, shard).has_value();
    all.shards_kept += is_there;
    planned += shard.expected_bytes;
    left += is_there ? 0 : shard.expected_bytes;
  }
  const double share = planned > 0 ? static_cast<double>(left) / static_cast<double>(planned) : 1;
  all.bytes_in = std::llround(static_cast<double>(all.bytes_in) * share);
  all.bytes_out = std::llround(static_cast<double>(all.bytes_out) * share);
  all.seconds *= share;
}

// Of a shard the tar file, two indexes and the note of its counts; of the set: folder, three parts, their lists and
// names, .work and its lock, dataset.begun.json, dataset.json, contact.jpg, duplicates.txt; each rank and the first
// write one file aside.
int64_t count_inodes(const PackForecast& all) {
  constexpr int64_t kOfShard = 4, kOfSet = 16;
  return kOfShard * (all.num_shards - all.shards_kept) + kOfSet + all.ranks + 1;
}

}  // namespace

PackForecast forecast_pack(const PackRequest& request, int64_t ranks) {
  check_request(request);
  const OpenedSource opened = open_source(request.source);
  const Source& source = *opened.source;
  check_samples(request, source);
  PackForecast all;
  all.source_format = opened.format;
  all.num_samples = static_cast<int64_t>(source.samples().size());
  all.num_classes = static_cast<int64_t>(source.classes().size());
  all.ranks = ranks;
  all.threads = request.threads > 0 ? request.threads : site::usable_cores();
  all.is_complete = check_target(request, opened);
  if (all.is_complete) return all;
  const Probed probed = probe(source, request.image, kMaxSeconds);
  const auto shards = plan_shards(source, request, request.image.max_side > 0 ? estimate_growth(probed) : 1);
  all.num_shards = static_cast<int64_t>(shards.size());
  expect_bytes(source, request, probed, all);
  all.num_probed = probed.count;
  all.seconds = probed.seconds / static_cast<double>(std::max<int64_t>(probed.count, 1)) *
                static_cast<double>(all.num_samples) / static_cast<double>(all.threads * ranks);
  leave_out_finished(request.folder, shards, all);
  all.num_inodes = count_inodes(all);
  all.refused = probed.refused;
  all.notes = source.notes();
  all.refused.insert(all.refused.end(), source.refused().begin(), source.refused().end());
  const site::Storage storage = site::read_storage("to", existing_parent(request.folder));
  all.free_bytes = static_cast<int64_t>(storage.free_bytes);
  if (storage.total_inodes > 0) all.free_inodes = static_cast<int64_t>(storage.free_inodes);
  all.quota = site::read_quota(storage.folder, storage.type);
  return all;
}

bool PackForecast::fits() const {
  return bytes_out <= quota.free_bytes.value_or(free_bytes) && bytes_out <= free_bytes &&
         (free_inodes < 0 || num_inodes <= free_inodes) && num_inodes <= quota.free_files.value_or(num_inodes);
}

base::Json PackForecast::to_json() const {
  base::Json all = base::Json::object();
  all["source_format"] = source_format;
  all["samples"] = num_samples;
  all["classes"] = num_classes;
  all["bytes_in"] = bytes_in;
  all["bytes_out"] = bytes_out;
  all["complete"] = is_complete;
  all["shards"] = num_shards;
  all["shards_kept"] = shards_kept;
  all["inodes"] = num_inodes;
  all["ranks"] = ranks;
  all["threads"] = threads;
  all["seconds"] = seconds;
  all["samples_probed"] = num_probed;
  all["refused"] = refused.size();
  all["free_bytes"] = free_bytes;
  all["free_inodes"] = free_inodes >= 0 ? base::Json(free_inodes) : base::Json(nullptr);
  all["quota_free_bytes"] = quota.free_bytes ? base::Json(*quota.free_bytes) : base::Json(nullptr);
  all["quota_free_files"] = quota.free_files ? base::Json(*quota.free_files) : base::Json(nullptr);
  all["fits"] = fits();
  return all;
}

}  // namespace lockstep::sources
