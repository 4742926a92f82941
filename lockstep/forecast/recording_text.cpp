// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recording_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr std::string_view kFormat = "lockstep recording";
constexpr int64_t kVersion = 1;
constexpr std::string_view kChecksum = "sha256 ";
constexpr size_t kChecksumLine = kChecksum.size() + 64 + 1;
constexpr size_t kMaxHeader = size_t{1} << 20;

base::Json parse_header(std::string_view content, const std::string& source) {
  const size_t end = content.substr(0, kMaxHeader).find('\n');
  if (end == std::string_view::npos) {
    throw Error(Blame::user, text(source, ":1: the first line of a recording does not end"), kRecordAgain);
  }
  base::Json header = base::parse_json(content.substr(0, end), source, {.max_bytes = kMaxHeader, .comments = false});
  if (!header.is_object() || header.string_or("format", "") != kFormat) {
    throw Error(Blame::user, text(source, ":1: not a recording: \"format\" is not \"", kFormat, "\""),
                "give a file that lockstep.record() or `lockstep plan --save-recording` wrote");
  }
  if (const int64_t version = header.int_or("version", 0); version != kVersion) {
    throw Error(Blame::user,
                text(source, ":1: version ", version, " of the recording format; this program reads ", kVersion),
                "record again with this version, or use the program that goes with the file");
  }
  return header;
}

int64_t count_lines(std::string_view content) {
  return std::count(content.begin(), content.end(), '\n');
}

}  // namespace

std::string print_header(std::string_view kind, const base::Json& members) {
  base::Json header = base::Json::object();
  header["format"] = kFormat;
  header["version"] = kVersion;
  header["kind"] = kind;
  for (const auto& member : members.members()) header[member.key] = member.value;
  return header.dump(-1) + "\n";
}

std::string seal_recording(std::string text) {
  const std::string digest = base::sha256_hex(text);
  text += kChecksum;
  text += digest;
  text += '\n';
  return text;
}

std::string kind_in_header(std::string_view content, const std::string& source) {
  return parse_header(content, source).at("kind").as_string();
}

OpenedRecording open_recording(std::string_view content, const std::string& source, std::string_view kind) {
  if (content.size() > static_cast<size_t>(kMaxRecordingBytes)) {
    throw Error(Blame::user, text(source, ": more than ", kMaxRecordingBytes, " bytes"), "record fewer steps");
  }
  OpenedRecording opened{parse_header(content, source), {}};
  if (const auto& found = opened.header.at("kind").as_string(); found != kind) {
    throw Error(Blame::user, text(source, ":1: a recording of kind \"", found, "\" where \"", kind, "\" is wanted"),
                found == "allocator" ? "an allocator's stream is replayed with `lockstep bench replay`"
                                     : "record a step with lockstep.record()");
  }
  const size_t body = content.find('\n') + 1;
  const bool sealed = content.size() >= body + kChecksumLine && content.back() == '\n' &&
                      content.substr(content.size() - kChecksumLine, kChecksum.size()) == kChecksum &&
                      content[content.size() - kChecksumLine - 1] == '\n';
  if (!sealed) {
    throw Error(Blame::user,
                text(source, ":", count_lines(content) + (content.back() != '\n'),
                     ": the file ends without its checksum line: it was cut"),
                kRecordAgain);
  }
  const std::string_view summed = content.substr(0, content.size() - kChecksumLine);
  const std::string_view digest = content.substr(summed.size() + kChecksum.size(), 64);
  if (base::sha256_hex(summed) != digest) {
    throw Error(Blame::user,
                text(source, ":", count_lines(content), ": the checksum does not match: something above was changed"),
                kRecordAgain);
  }
  opened.body = summed.substr(body);
  return opened;
}

bool RecordingScanner::next_line() {
  if (rest_.empty()) return false;
  const size_t end = rest_.find('\n');  // the body ends with a line end: open_recording saw it
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  ++line_number_;
  return true;
}

std::string_view RecordingScanner::word() {
  if (line_.empty()) fail("the line ends too early", "see docs/formats/recording.md");
  const size_t end = std::min(line_.find(' '), line_.size());
  const std::string_view found = line_.substr(0, end);
  line_.remove_prefix(std::min(end + 1, line_.size()));
  return found;
}

int64_t RecordingScanner::integer_in(std::string_view word, int base, std::string_view what, int64_t low,
                                     int64_t high) const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc{} || end != word.data() + word.size()) {
    fail(text("'", word, "' is no ", what), "see docs/formats/recording.md");
  }
  if (value < low || value > high) fail(text(what, " ", value, " is outside ", low, " .. ", high), "record again");
  return value;
}

int64_t RecordingScanner::integer(std::string_view what, int64_t low, int64_t high) {
  return integer_in(word(), 10, what, low, high);
}

double RecordingScanner::number(std::string_view what) {
  const std::string_view found = word();
  double value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc{} || end != found.data() + found.size() || !std::isfinite(value) || value < 0) {
    fail(text("'", found, "' is no ", what), "see docs/formats/recording.md");
  }
  return value;
}

size_t RecordingScanner::choice(const std::vector<std::string>& choices, std::string_view what) {
  const std::string_view found = word();
  const auto at = std::find(choices.begin(), choices.end(), found);
  if (at == choices.end()) fail(text("unknown ", what, " '", found, "'"), base::did_you_mean(found, choices));
  return static_cast<size_t>(at - choices.begin());
}

void RecordingScanner::end_line() const {
  if (!line_.empty()) fail(text("'", line_, "' is more than this line has"), "see docs/formats/recording.md");
}

void RecordingScanner::fail(const std::string& what, const std::string& fix) const {
  throw Error(Blame::user, text(source_, ":", line_number_, ": ", what), fix);
}

int64_t header_count(const base::Json& header, std::string_view key, int64_t high) {
  const base::Json& value = header.at(key);
  const int64_t count = value.as_int();
  if (count < 0 || count > high) {
    throw Error(Blame::user, text(value.where(), ": ", key, " ", count, " is outside 0 .. ", high), kRecordAgain);
  }
  return count;
}

void check_header_keys(const base::Json& header, const std::vector<std::string>& known) {
  for (const auto& member : header.members()) {
    if (member.key == "format" || member.key == "version" || member.key == "kind") continue;
    if (std::find(known.begin(), known.end(), member.key) == known.end()) {
      throw Error(Blame::user, text(member.value.where(), ": unknown key '", member.key, "' in a recording's header"),
                  base::did_you_mean(member.key, known));
    }
  }
}

}  // namespace lockstep::forecast
