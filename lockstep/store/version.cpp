// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/version.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/disk.h"
#include "lockstep/site/launch.h"

namespace lockstep::store {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

// A folder being filled, which goes again unless it gets its final name.
class DraftFolder {
 public:
  explicit DraftFolder(const Path& versions)
      : path_(versions / text(base::kTemporary, site::host_name(), "-", ::gettid(), "-",
                              static_cast<int64_t>(base::unix_seconds() * 1e6))) {
    if (::mkdir(path_.c_str(), 0777) != 0) {
      base::throw_errno(text("cannot make ", path_.string()), "the store must be a folder where you may write");
    }
  }
  ~DraftFolder() {
    std::error_code none;
    if (!path_.empty()) std::filesystem::remove_all(path_, none);
  }
  DraftFolder(const DraftFolder&) = delete;
  DraftFolder& operator=(const DraftFolder&) = delete;
  const Path& path() const { return path_; }
  // False when there is such a folder.
  bool becomes(const Path& final_name) {
    if (::rename(path_.c_str(), final_name.c_str()) == 0) {
      path_.clear();
      return true;
    }
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
    base::throw_errno(text("cannot rename ", path_.string(), " to ", final_name.string()));
  }

 private:
  Path path_;
};

void check_room(run::Disk& disk, const Path& versions, std::span<const run::CheckpointPart> parts) {
  int64_t needed = 0;
  for (const auto& part : parts) needed += part.bytes;
  const auto available = disk.free_bytes(versions);
  if (static_cast<uint64_t>(needed) <= available) return;
  throw Error(Blame::machine,
              text(versions.string(), ": the version takes ", base::format_bytes(static_cast<double>(needed)), ", ",
                   base::format_bytes(static_cast<double>(available)), " are free"),
              "make room, or give another --store");
}

std::string file_damage(const Path& folder, const Json& row) {
  const std::string& name = row.at("name").as_string();
  if (!run::is_part_name(name)) return text(kManifestName, " names a file that no version has");
  const Path path = folder / name;
  if (!base::is_there(path)) return name + " is missing";
  // Its size first: a file with a hole of terabytes costs nothing to make, and hours to read.
  std::error_code no_file;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, no_file));
  if (!no_file && bytes != row.at("bytes").as_int()) {
    return text(name, " has ", bytes, " bytes instead of ", row.at("bytes").as_int());
  }
  base::Sha256 hash;
  base::read_in_pieces(path, [&](std::span<const std::byte> piece) { hash.update(piece); });
  return hash.hex() == row.at("sha256").as_string() ? "" : name + " has a wrong checksum";
}

Json read_manifest(const Path& folder) {
  return base::read_json(folder / kManifestName);
}

}  // namespace

std::string write_version(const Path& versions, std::span<const run::CheckpointPart> parts) {
  const auto disk = run::real_disk();
  base::make_synced_folders(versions);
  check_room(*disk, versions, parts);
  DraftFolder draft(versions);
  Json manifest = Json::object(), rows = Json::array();
  for (const auto& part : parts) rows.push_back(run::write_part(*disk, draft.path(), part));
  manifest["format"] = 1;
  manifest["files"] = std::move(rows);
  const std::string content = manifest.dump() + "\n";
  run::write_text(*disk, draft.path() / kManifestName, content);
  base::fsync_folder(draft.path());
  std::string id = base::sha256_hex(content);
  if (draft.becomes(versions / id)) {
    base::fsync_folder(versions);
  } else if (const std::string why = damage(versions / id); !why.empty()) {
    throw Error(Blame::machine, text((versions / id).string(), ": this version is damaged: ", why),
                text("the same is about to be added: rm -r ", base::shell_path((versions / id).string()),
                     ", then the same command"));
  }
  return id;
}

std::string manifest_damage(const Path& folder) {
  const Path manifest = folder / kManifestName;
  if (!base::is_there(manifest)) return text(kManifestName, " is missing");
  try {
    const std::string content = base::read_file(manifest, 1 << 20);
    if (base::sha256_hex(content) != folder.filename()) return text(kManifestName, " has a wrong checksum");
    return "";
  } catch (const Error& error) {
    return text(kManifestName, " cannot be read: ", error.what());
  }
}

std::string damage(const Path& folder) {
  if (std::string why = manifest_damage(folder); !why.empty()) return why;
  try {
    const Json manifest = read_manifest(folder);
    for (const Json& row : manifest.at("files").items()) {
      if (std::string why = file_damage(folder, row); !why.empty()) return why;
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

int64_t bytes_of(const Path& folder) {
  int64_t bytes = 0;
  const Json manifest = read_manifest(folder);
  for (const Json& row : manifest.at("files").items()) bytes += row.at("bytes").as_int();
  return bytes;
}

}  // namespace lockstep::store
