// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/part_file.h"

#include <chrono>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

Path shards_folder(const Path& checkpoints, const std::string& token) {
  return checkpoints / (".shards-" + token);
}

// Appears whole or not at all.
void write_row(Disk& disk, const Path& folder, const std::string& name, const Json& row) {
  const Path draft = folder / ("." + name + ".row");
  write_text(disk, draft, row.dump() + "\n");
  disk.rename(draft, folder / (name + ".row"));
  disk.sync_folder(folder);
}

}  // namespace

Json write_part(Disk& disk, const Path& folder, const CheckpointPart& part) {
  const auto file = disk.create(folder / part.name);
  base::Sha256 hash;
  int64_t bytes = 0;
  part.write([&](std::span<const std::byte> piece) {
    hash.update(piece);
    bytes += static_cast<int64_t>(piece.size());
    file->write(piece);
  });
  file->sync();
  file->close();
  base::ensure(bytes == part.bytes, "a checkpoint part has the size it announced");
  Json row = Json::object();
  row["name"] = part.name;
  row["bytes"] = bytes;
  row["sha256"] = hash.hex();
  return row;
}

void write_text(Disk& disk, const Path& path, std::string_view content) {
  const auto file = disk.create(path);
  file->write(std::as_bytes(std::span(content.data(), content.size())));
  file->sync();
  file->close();
}

void write_shard(Disk& disk, const Path& checkpoints, const std::string& token, const CheckpointPart& part) {
  const Path folder = shards_folder(checkpoints, token);
  disk.make_folder(folder);
  try {
    write_row(disk, folder, part.name, write_part(disk, folder, part));
  } catch (const Error& error) {
    Json row = Json::object();
    row["name"] = part.name;
    row["error"] = std::string(error.what());
    write_row(disk, folder, part.name, row);
    throw;
  }
}

Json take_shard(Disk& disk, const Path& checkpoints, const std::string& token, const std::string& name,
                const Path& draft, double patience_seconds) {
  const Path folder = shards_folder(checkpoints, token);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_seconds);
  while (!std::filesystem::exists(folder / (name + ".row"))) {
    if (std::chrono::steady_clock::now() > end) {
      throw Error(Blame::machine,
                  text(checkpoints.string(), ": the writer of ", name, " on another node gave no sign in ",
                       patience_seconds, " s"),
                  "is this folder on a file system that all nodes share?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  Json row = base::read_json(folder / (name + ".row"));
  if (const Json* error = row.find("error")) {
    throw Error(Blame::machine, text(name, " was not written on another node: ", error->as_string()));
  }
  disk.rename(folder / name, draft / name);
  return row;
}

}  // namespace lockstep::run
