// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace lockstep::forecast {

// What both kinds of recording share as files (docs/formats/recording.md): a header line, a body of short lines, a
// checksum line.

// The first line. `members` follow format, version and kind.
std::string print_header(std::string_view kind, const base::Json& members);
// The text with its checksum line.
std::string seal_recording(std::string text);

struct OpenedRecording {
  base::Json header;
  std::string_view body;  // from line 2 to before the checksum
};

// The kind that the first line names. User error when this is no recording of version 1.
std::string kind_in_header(std::string_view content, const std::string& source);
// Checks header and checksum. User error with the line otherwise.
OpenedRecording open_recording(std::string_view content, const std::string& source, std::string_view kind);

// Walks over the words of the body, line by line; every complaint names the line.
class RecordingScanner {
 public:
  RecordingScanner(std::string_view body, std::string source) : rest_(body), source_(std::move(source)) {}

  bool next_line();
  bool at_line_end() const { return line_.empty(); }
  std::string_view word();  // user error at the end of the line
  int64_t integer(std::string_view what, int64_t low, int64_t high);
  double number(std::string_view what);  // finite, not negative
  size_t choice(const std::vector<std::string>& choices, std::string_view what);
  int64_t integer_in(std::string_view word, int base, std::string_view what, int64_t low, int64_t high) const;
  void end_line() const;  // user error when words are left

  [[noreturn]] void fail(const std::string& what, const std::string& fix) const;

 private:
  std::string_view rest_;
  std::string_view line_;
  std::string source_;
  int64_t line_number_ = 1;
};

constexpr const char* kRecordAgain = "record again, or copy the file again from where it was whole";

// Runs `read`; a complaint about the header's JSON that knows no fix gets this one.
template <class Read>
auto with_fix(const Read& read) {
  try {
    return read();
  } catch (const base::Error& error) {
    if (!error.fix().empty()) throw;
    throw base::Error(error.blame(), error.what(), kRecordAgain);
  }
}

// Limits that no honest recording comes near; beyond them a file is refused before memory is spent on it.
constexpr int64_t kMaxRecordingBytes = int64_t{1} << 28;
constexpr int64_t kMaxStorageBytes = int64_t{1} << 50;
constexpr int64_t kMaxCount = int64_t{1} << 40;

// The header's member as a count within the limits. User error with the place otherwise.
int64_t header_count(const base::Json& header, std::string_view key, int64_t high = kMaxCount);
// User error for members that are not in `known`.
void check_header_keys(const base::Json& header, const std::vector<std::string>& known);

}  // namespace lockstep::forecast
