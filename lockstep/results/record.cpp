// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/record.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::results {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr size_t kLongestLine = size_t{1} << 28;
constexpr size_t kBuffer = size_t{1} << 20;
constexpr std::string_view kErrorMember = ",\"error\":";

std::string utc(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[40];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%S", &parts);
  return buffer;
}

Json head_json(const RecordHead& head) {
  Json line = Json::object();
  line["path"] = head.path;
  line["sha256"] = head.sha256.empty() ? Json() : Json(head.sha256);
  line["bytes"] = head.file.bytes < 0 ? Json() : Json(head.file.bytes);
  line["modified"] = head.file.modified.empty() ? Json() : Json(head.file.modified);
  line["model"] = head.model;
  line["time"] = head.time;
  return line;
}

std::string string_member(const Json& object, const char* key) {
  const Json* value = object.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

// Behind the value of "time", which holds no quote. A quote within a text is escaped: the key cannot stand there.
size_t end_of_head(std::string_view line) {
  constexpr std::string_view kTime = ",\"time\":\"";
  const size_t at = line.find(kTime);
  if (at == std::string_view::npos) return at;
  const size_t quote = line.find('"', at + kTime.size());
  return quote == std::string_view::npos ? quote : quote + 1;
}

}  // namespace

FileState look_at_file(const base::Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  char part[16];
  std::snprintf(part, sizeof part, ".%09ldZ", static_cast<long>(status.st_mtim.tv_nsec));
  return {static_cast<int64_t>(status.st_size), utc(status.st_mtim.tv_sec) + part};
}

std::string time_now() {
  return utc(std::time(nullptr)) + "Z";
}

std::string readable_name(std::string_view name) {
  std::string readable;
  for (size_t at = 0; at < name.size();) {
    const size_t length = base::utf8_length(name, at);
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(name[at]));
    readable += length > 0 ? std::string(name.substr(at, length)) : code;
    at += std::max<size_t>(length, 1);
  }
  return readable;
}

std::string record_line(const RecordHead& head, const Json& record) {
  Json line = head_json(head);
  for (const auto& member : record.members()) line[member.key] = member.value;
  return line.dump(-1);
}

std::string failed_line(const RecordHead& head, const std::string& error) {
  Json line = head_json(head);
  line["error"] = error;
  return line.dump(-1);
}

std::optional<RecordHead> read_head(std::string_view line) {
  const size_t end = end_of_head(line);
  if (!line.starts_with("{\"path\":") || end == std::string_view::npos) return std::nullopt;
  try {
    const Json head = base::parse_json(text(line.substr(0, end), "}"), "record", {.comments = false});
    const Json* bytes = head.find("bytes");
    return RecordHead{head.at("path").as_string(),
                      string_member(head, "sha256"),
                      FileState{bytes && bytes->is_integer() ? bytes->as_int() : -1, string_member(head, "modified")},
                      string_member(head, "model"),
                      string_member(head, "time"),
                      line.substr(end).starts_with(kErrorMember)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

void for_each_line(const base::Path& file, const std::function<void(int64_t offset, std::string_view line)>& each) {
  std::string rest;  // of a line whose end is in a later piece
  int64_t offset = 0;
  base::read_in_pieces(file, [&](std::span<const std::byte> piece) {
    std::string_view bytes(reinterpret_cast<const char*>(piece.data()), piece.size());
    for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      std::string_view line = bytes.substr(0, end);
      if (!rest.empty()) line = rest.append(line);
      each(offset, line);
      offset += static_cast<int64_t>(line.size()) + 1;
      rest.clear();
      bytes.remove_prefix(end + 1);
    }
    rest += bytes;
    if (rest.size() > kLongestLine) {
      throw Error(Blame::user,
                  text(file.string(), ": a line of more than ", kLongestLine >> 20U, " MiB at byte ", offset),
                  "this is no file of records");
    }
  });
}

void for_each_record(const base::Path& file, const std::function<void(const Json& record)>& each) {
  int64_t number = 0;
  for_each_line(file, [&](int64_t, std::string_view line) {
    ++number;
    const std::string place = text(file.string(), ", line ", number);
    const Json record = base::parse_json(line, place, {.max_bytes = kLongestLine, .comments = false});
    if (!record.is_object() || !record.find("path")) throw Error(Blame::user, text(place, ": this is no record"));
    each(record);
  });
}

DraftedFile::DraftedFile(const base::Path& path)
    : path_(path), draft_(path.string() + ".draft"), file_(draft_, base::FileWriter::Mode::truncate) {}

DraftedFile::~DraftedFile() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(draft_, ignored);
}

void DraftedFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBuffer) flush();
}

void DraftedFile::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void DraftedFile::commit() {
  flush();
  file_.sync();
  file_.close();
  std::error_code failed;
  std::filesystem::rename(draft_, path_, failed);
  if (failed) {
    throw Error(Blame::machine,
                text("cannot rename ", draft_.string(), " to ", path_.string(), ": ", failed.message()));
  }
  base::fsync_folder(path_.parent_path().empty() ? "." : path_.parent_path());
  committed_ = true;
}

}  // namespace lockstep::results
