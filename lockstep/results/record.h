// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

// Records of what was predicted for the images of a collection: docs/formats/predictions.md.
namespace lockstep::results {

// An image's file (of a sample in a shard: the shard), as cheaply as it can be looked at again.
struct FileState {
  int64_t bytes = -1;    // -1: there is no such file
  std::string modified;  // "2026-11-17T19:20:31.123456789Z"

  bool operator==(const FileState&) const = default;
};
FileState look_at_file(const base::Path& path);

// The time now, in whole seconds: "2026-11-17T19:20:31Z".
std::string time_now();

// What every record begins with, in this order, before what the task says or "error".
struct RecordHead {
  std::string path;
  std::string sha256;  // of the image's bytes; empty: they could not be read
  FileState file;
  std::string model;
  std::string time;
  bool failed = false;  // an "error" follows, in the place of what the task says

  bool operator==(const RecordHead&) const = default;
};

// A file's name as a text: bytes that are no UTF-8, which JSON cannot hold, as \xNN.
std::string readable_name(std::string_view name);

// One line without its end.
std::string record_line(const RecordHead& head, const base::Json& record);
std::string failed_line(const RecordHead& head, const std::string& error);

// None for what is no record. The rest of the line is not looked at: it may be long.
std::optional<RecordHead> read_head(std::string_view line);

// Every whole line of a file, in order, with its position; the last one without a line end is left out: it was torn.
// One longer than 256 MiB is a user error.
void for_each_line(const base::Path& file, const std::function<void(int64_t offset, std::string_view line)>& each);
// Every record of a results file. User error that names the line for what is none.
void for_each_record(const base::Path& file, const std::function<void(const base::Json& record)>& each);

// A file that is there with all its content or not at all, written in any number of pieces: its draft lies beside it
// until commit(). Machine errors as of base::FileWriter.
class DraftedFile {
 public:
  explicit DraftedFile(const base::Path& path);
  ~DraftedFile();  // without a commit() the draft goes
  DraftedFile(const DraftedFile&) = delete;
  DraftedFile& operator=(const DraftedFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  void flush();

  base::Path path_, draft_;
  base::FileWriter file_;
  std::string buffer_;
  bool committed_ = false;
};

}  // namespace lockstep::results
