// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/part_file.h"

#include <algorithm>
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

Path partitions_folder(const Path& checkpoints, const std::string& token) {
  return checkpoints / (".partitions-" + token);
}

// Appears whole or not at all. Nothing needs it after the power was gone: the folder is not synced, and may be none any
// more, because who commits takes the row and removes the folder as soon as it is there.
void write_row(Disk& disk, const Path& folder, const std::string& name, const Json& row) {
  const Path draft = folder / ("." + name + ".row");
  write_text(disk, draft, row.dump() + "\n");
  disk.rename(draft, folder / (name + ".row"));
}

// Until the row is there.
void await_row(const Path& row, const Patience& patience) {
  using Clock = std::chrono::steady_clock;
  const auto after = [](double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  auto end = after(patience.seconds);
  bool stopping = false;
  std::error_code unseen;  // a shared file system may fail once in a while: patience covers that too
  while (!std::filesystem::exists(row, unseen)) {
    if (!stopping && patience.stop.stop_requested()) {
      stopping = true;
      end = std::min(end, after(patience.seconds_after_stop));
    }
    if (Clock::now() > end) {
      throw Error(Blame::machine,
                  text(row.parent_path().parent_path().string(), ": the writer of ", row.stem().string(),
                       " on another node gave no sign in ", stopping ? patience.seconds_after_stop : patience.seconds,
                       " s", unseen ? text(" (", unseen.message(), ")") : ""),
                  "is this folder on a file system that all nodes share?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

bool is_part_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

Json write_part(Disk& disk, const Path& folder, const CheckpointPart& part) {
  const auto file = disk.create(folder / part.name);
  base::Sha256 hash;
  int64_t bytes = 0;
  part.write([&](std::span<const std::byte> chunk) {
    hash.update(chunk);
    bytes += static_cast<int64_t>(chunk.size());
    file->write(chunk);
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

void write_partition(Disk& disk, const Path& checkpoints, const std::string& token, const CheckpointPart& part) {
  const Path folder = partitions_folder(checkpoints, token);
  try {
    disk.make_folder(folder);
    write_row(disk, folder, part.name, write_part(disk, folder, part));
  } catch (const Error& error) {
    try {  // half of it is of no use, and on a full disk the row needs the room
      disk.remove(folder / part.name);
    } catch (const Error&) {
    }
    disk.make_folder(folder);
    Json row = Json::object();
    row["name"] = part.name;
    row["error"] = std::string(error.what());
    write_row(disk, folder, part.name, row);
    throw;
  }
}

Json take_partition(Disk& disk, const Path& checkpoints, const std::string& token, const std::string& name,
                    const Path& draft, const Patience& patience) {
  const Path folder = partitions_folder(checkpoints, token);
  await_row(folder / (name + ".row"), patience);
  Json row = base::read_json(folder / (name + ".row"));
  if (const Json* error = row.find("error")) {
    throw Error(Blame::machine, text(name, " was not written on another node: ", error->as_string()));
  }
  disk.rename(folder / name, draft / name);
  return row;
}

}  // namespace lockstep::run
