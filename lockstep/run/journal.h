// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/run/record_file.h"

namespace lockstep::run {

// The append-only history of a run across all its restarts: one JSON object a line. Events and their fields:
// docs/formats/journal.md. Each append is one write(2), so a killed process can tear the last line only; whoever
// appends next ends that line first, and readers skip it. A line for which the disk has no room is cut off at once,
// unless another process (submit --cancel beside a running link) has appended meanwhile, as far as can
// be seen.
class Journal {
 public:
  explicit Journal(const base::Path& path);

  // Adds "v", "t" (Unix seconds) and "event" in front of `fields`. REQUIRES: fields is an object.
  void append(std::string_view event, const base::Json& fields);
  void sync() { file_.sync(); }

 private:
  base::Path path_;
  RecordFile file_;
};

struct History {
  std::vector<base::Json> events;  // every well-formed line, in order
  int64_t skipped = 0;             // lines that are not events: a torn end, an unknown version

  // The events that count: after a "resume" at step S or a "rewind" to it, earlier events of steps beyond S are void,
  // because those steps were done again; a "start" makes everything before it void. Of one
  // step's evaluations the last counts: a kill behind one that was made up for lets it be made again.
  std::vector<base::Json> effective() const;
  // Those of effective() with that name.
  std::vector<base::Json> named(std::string_view event) const;
};

// The event that a line of a journal is; none when it is not one: torn by a kill, damaged, of an unknown version.
std::optional<base::Json> parse_event(std::string_view line, const std::string& source);

// User error when the file is missing; a journal of an unknown version gives skipped lines, not an error.
History read_journal(const base::Path& path);

}  // namespace lockstep::run
