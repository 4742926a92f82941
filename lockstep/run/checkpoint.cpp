// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/checkpoint.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

constexpr int64_t kFormat = 1;
constexpr int64_t kFormatWithPartitions = 2;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kState = "state.json";
constexpr uint64_t kSpareBytes = 1 << 20;  // state, manifest and folder entries

std::string folder_name(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

// The step in "step-00000123" or "step-00000123.old"; none for other names.
std::optional<int64_t> step_in(std::string name) {
  if (name.ends_with(".old")) name.resize(name.size() - 4);
  if (!name.starts_with("step-") || name.size() < 13 || name.size() > 20) return std::nullopt;
  const std::string digits = name.substr(5);
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return std::stoll(digits);
}

struct Entry {
  int64_t step;
  Path folder;
};

// Newest first; of one step, the plain name before the ".old" one.
std::vector<Entry> entries_of(const std::vector<Path>& folders) {
  std::vector<Entry> entries;
  for (const auto& folder : folders) {
    if (const auto step = step_in(folder.filename().string())) entries.push_back({*step, folder});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.step != b.step ? a.step > b.step : a.folder.native() < b.folder.native();
  });
  return entries;
}

std::string manifest_text(Json manifest) {
  manifest.erase("sha256");
  const std::string self = base::sha256_hex(manifest.dump(-1));
  manifest["sha256"] = self;
  return manifest.dump() + "\n";
}

std::string damage_of_file(const Path& folder, const Json& row) {
  const std::string& name = row.at("name").as_string();
  if (!is_part_name(name)) return text(base::quote_json(name), " is no file of this checkpoint");
  std::error_code error;
  const auto bytes = std::filesystem::file_size(folder / name, error);
  if (error) return text(name, " is missing");
  const auto expected = static_cast<uint64_t>(row.at("bytes").as_int());
  if (bytes != expected) return text(name, " has ", bytes, " bytes instead of ", expected);
  if (base::sha256_of_file(folder / name) != row.at("sha256").as_string()) return text(name, " has a wrong checksum");
  return "";
}

int64_t format_of(const Save& save) {
  return save.partitions.empty() && !save.state.contains("cut") ? kFormat : kFormatWithPartitions;
}

CheckpointPart state_part(const Save& save) {
  Json state = Json::object();
  state["format"] = format_of(save);
  state["step"] = save.step;
  for (const auto& member : save.state.members()) state[member.key] = member.value;
  const std::string content = state.dump() + "\n";
  return {kState, static_cast<int64_t>(content.size()),
          [content](const Sink& sink) { sink(std::as_bytes(std::span(content.data(), content.size()))); }};
}

void check_space(Disk& disk, const Path& folder, const Save& save) {
  uint64_t needed = kSpareBytes;
  for (const auto& part : save.parts) needed += static_cast<uint64_t>(part.bytes);
  const uint64_t free = disk.free_bytes(folder);
  if (needed <= free) return;
  throw Error(
      Blame::machine,
      text(folder.string(), ": the checkpoint of step ", save.step, " needs ", needed, " bytes, ", free, " are free"),
      text("free some space: df -h ", base::shell_path(folder.string()), "; earlier checkpoints are untouched"));
}

// Replaces a small file by rename, on the disk when this returns.
void replace_text(Disk& disk, const Path& path, const std::string& content) {
  const Path draft = path.parent_path() / ("." + path.filename().string() + ".tmp");
  write_text(disk, draft, content + "\n");
  disk.rename(draft, path);
  disk.sync_folder(path.parent_path());
}

std::string name_in(const Path& pointer) {
  try {
    return std::string(base::trim(base::read_file(pointer, 256)));
  } catch (const Error&) {
    return "";
  }
}

// Whether a save made it. A folder that somebody put here under such a name is not ours to remove.
bool is_ours(Disk& disk, const Path& folder) {
  return disk.exists(folder / kManifest) || disk.exists(folder / kState);
}

// Out of the way of a save, under a name that no save uses.
void set_aside(Disk& disk, const Path& folder) {
  Path aside = folder.string() + ".aside";
  for (int i = 2; disk.exists(aside); ++i) aside = text(folder.string(), ".aside-", i);
  disk.rename(folder, aside);
}

// A folder under a final name is always whole: it leaves that name before its files go.
void discard(Disk& disk, const Path& folder) {
  const Path leaving = folder.parent_path() / (".removing-" + folder.filename().string());
  disk.rename(folder, leaving);
  disk.remove(leaving);
}

// REQUIRES: the checkpoint of `save` is durable.
void remove_superseded(Disk& disk, const Path& folder, const Save& save) {
  std::set<std::string> kept = {folder_name(save.step)};
  const std::string best = name_in(folder / "best");
  if (const auto step = step_in(best); step && *step > save.step) {
    disk.remove(folder / "best");  // of a future that the run has left: going on from there is not wanted
  } else {
    kept.insert(best);
  }
  int64_t left = std::max<int64_t>(save.keep, 1) - 1;
  const auto entries = entries_of(disk.list(folder));
  for (const auto& entry : entries) {
    const std::string name = entry.folder.filename().string();
    if (entry.step >= save.step || name.ends_with(".old")) continue;
    if (left-- > 0 || (save.milestone_steps > 0 && entry.step % save.milestone_steps == 0)) kept.insert(name);
  }
  for (const auto& entry : entries) {
    if (!kept.contains(entry.folder.filename().string()) && is_ours(disk, entry.folder)) discard(disk, entry.folder);
  }
}

// Of earlier attempts. Partitions of this one may be there already.
void remove_leftovers(Disk& disk, const Path& folder, const std::string& token) {
  for (const auto& path : disk.list(folder)) {
    const std::string name = path.filename().string();
    const bool partitions = name.starts_with(".partitions-") && name != ".partitions-" + token;
    if (partitions || name.starts_with(".saving-") || name.starts_with(".removing-")) disk.remove(path);
  }
}

Found first_good(const std::vector<Path>& folders) {
  Found found;
  for (const auto& folder : folders) {
    std::string why = damage(folder);
    try {
      if (why.empty()) {
        const Json state = base::read_json(folder / kState, {.max_bytes = 64 << 20});
        found.checkpoint = Checkpoint{folder, state.at("step").as_int(), state};
        return found;
      }
    } catch (const Error& error) {
      why = error.what();
    }
    found.passed_over.push_back(text(folder.string(), ": ", why));
  }
  return found;
}

}  // namespace

CheckpointPart safetensors_part(std::string name, const std::vector<weights::TensorView>& tensors,
                                const weights::TensorMetadata& metadata) {
  auto pieces = std::make_shared<const weights::SafetensorsPieces>(weights::safetensors_pieces(tensors, metadata));
  return {std::move(name), static_cast<int64_t>(pieces->num_bytes()), [pieces](const Sink& sink) {
            sink(std::as_bytes(std::span(pieces->head.data(), pieces->head.size())));
            for (const auto piece : pieces->data) sink(piece);
          }};
}

std::optional<Stamp> newest_stamp(const Path& checkpoints) {
  std::vector<Entry> entries;
  try {
    entries = entries_of(base::list_folder(checkpoints));
  } catch (const Error&) {  // who asks has the journal besides
  }
  if (entries.empty()) return std::nullopt;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(entries[0].folder, error);
  if (error) return Stamp{entries[0].step, 0};  // it was removed meanwhile: a newer one is there
  const auto time = std::chrono::file_clock::to_sys(written).time_since_epoch();
  return Stamp{entries[0].step, std::chrono::duration<double>(time).count()};
}

bool is_checkpoint(const Path& folder) {
  return base::is_there(folder / kManifest) && base::is_there(folder / kState);
}

std::string damage(const Path& folder) {
  try {
    const std::string content = base::read_file(folder / kManifest, 1 << 20);
    const Json manifest = base::parse_json(content, (folder / kManifest).string());
    if (content != manifest_text(manifest)) return "manifest.json has a wrong checksum";
    const int64_t format = manifest.at("format").as_int();
    if (format != kFormat && format != kFormatWithPartitions) return text("format ", format, " is not known here");
    // A copy of another checkpoint's folder or manifest is whole in itself, but not what its name says.
    const int64_t step = manifest.at("step").as_int();
    if (const auto named = step_in(folder.filename().string()); named && *named != step) {
      return text("manifest.json is that of step ", step);
    }
    for (const auto& row : manifest.at("files").items()) {
      std::string why = damage_of_file(folder, row);
      if (!why.empty()) return why;
    }
    const int64_t stands = base::read_json(folder / kState, {.max_bytes = 64 << 20}).at("step").as_int();
    return stands == step ? "" : text("state.json is that of step ", stands);
  } catch (const Error& error) {
    return error.what();
  }
}

CheckpointStore::CheckpointStore(Path folder, std::shared_ptr<Disk> disk)
    : folder_(std::move(folder)), disk_(std::move(disk)) {}

Path CheckpointStore::save(const Save& save) {
  disk_->make_folder(folder_);
  disk_->sync_folder(folder_.parent_path());  // else the power takes the folder, and all that is durable in it
  remove_leftovers(*disk_, folder_, save.token);
  check_space(*disk_, folder_, save);
  const std::string name = folder_name(save.step);
  const Path draft = folder_ / (".saving-" + name);
  Path target = folder_ / name;
  try {
    disk_->make_folder(draft);
    Json files = Json::array();
    for (const auto& part : save.parts) files.push_back(write_part(*disk_, draft, part));
    files.push_back(write_part(*disk_, draft, state_part(save)));
    for (const auto& partition : save.partitions) {
      files.push_back(take_partition(*disk_, folder_, save.token, partition, draft, save.patience));
    }
    Json manifest = Json::object();
    manifest["format"] = format_of(save);
    manifest["step"] = save.step;
    manifest["files"] = std::move(files);
    write_text(*disk_, draft / kManifest, manifest_text(manifest));
    disk_->sync_folder(draft);
    save.before_commit();
    if (disk_->exists(target)) {  // readers look at ".old" folders too: nothing is lost in between
      const Path old = target.string() + ".old";
      if (disk_->exists(old)) is_ours(*disk_, old) ? discard(*disk_, old) : set_aside(*disk_, old);
      is_ours(*disk_, target) ? disk_->rename(target, old) : set_aside(*disk_, target);
    }
    disk_->rename(draft, target);
  } catch (const std::exception&) {
    try {
      disk_->remove(draft);
    } catch (const Error&) {  // the next save removes it; the first error is the one to report
    }
    throw;
  }
  disk_->sync_folder(folder_);
  if (save.best) owed_best_ = name;
  untidy_.clear();
  try {
    tidy(save, name);
  } catch (const std::exception& error) {  // the checkpoint is durable all the same
    untidy_ = error.what();
  }
  return target;
}

void CheckpointStore::tidy(const Save& save, const std::string& name) {
  replace_text(*disk_, folder_ / "latest", name);
  if (!owed_best_.empty()) replace_text(*disk_, folder_ / "best", owed_best_);
  owed_best_.clear();
  remove_superseded(*disk_, folder_, save);
  if (!save.partitions.empty()) disk_->remove(folder_ / (".partitions-" + save.token));
}

Found CheckpointStore::newest(int64_t at_most) const {
  constexpr int kAttempts = 5;
  const auto listed = [&] {
    std::vector<Path> folders;
    for (const auto& entry : entries_of(disk_->list(folder_))) {
      if (entry.step <= at_most) folders.push_back(entry.folder);
    }
    return folders;
  };
  std::vector<Path> folders = listed();
  for (int attempt = 1;; ++attempt) {
    Found found = first_good(folders);
    if (found.checkpoint || attempt == kAttempts) return found;
    // Beside a run that saves, all that was listed may have given way to newer ones meanwhile.
    std::vector<Path> now = listed();
    if (now == folders) return found;
    folders = std::move(now);
  }
}

Found CheckpointStore::best() const {
  const std::string name = name_in(folder_ / "best");
  if (!step_in(name)) return newest();
  std::vector<Path> folders = {folder_ / name};
  for (const auto& entry : entries_of(disk_->list(folder_))) folders.push_back(entry.folder);
  return first_good(folders);
}

}  // namespace lockstep::run
