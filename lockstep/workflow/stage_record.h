// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::workflow {

// The files of a workflow's state: `<name>.workflow/...` (docs/formats/workflow.md). Plain paths, nothing is touched.
struct StatePaths {
  base::Path root;

  base::Path journal() const { return root / "journal.jsonl"; }
  base::Path digests() const { return root / "digests.jsonl"; }
  base::Path queue() const { return root / "queue.jsonl"; }
  base::Path report() const { return root / "report.html"; }
  base::Path stage(const std::string& name) const { return root / "stages" / name; }
  base::Path record(const std::string& name) const { return stage(name) / "record.json"; }
  base::Path attempt(const std::string& name) const { return stage(name) / "attempt.json"; }
  base::Path log(const std::string& name) const { return stage(name) / "log.txt"; }
  base::Path script(const std::string& name) const { return stage(name) / "submit.sh"; }
};

using DigestsByPath = std::map<std::string, std::string>;

// All on which the outcome of a stage rests.
struct Basis {
  std::vector<std::string> words;  // its kind first, as they stand in the document
  std::vector<std::string> outputs;
  DigestsByPath inputs;
  DigestsByPath files;  // those that words of the command name: a script, a job

  std::string key() const;
  bool operator==(const Basis&) const = default;
};
base::Json to_json(const Basis& basis);
Basis basis_from(const base::Json& document);

// What is known of a stage that is done; written last, in one piece.
struct Record {
  Basis basis;  // as it was when the stage began
  DigestsByPath outputs;
  std::vector<std::string> changed;  // files of the basis that were others when it ended
  double began = 0;                  // Unix seconds, of its first attempt
  double ended = 0;                  // likewise
  double seconds = 0;                // in which it ran, all attempts that it went on from together
  int64_t attempts = 1;
  std::string host;
  std::string version;  // of this program
  std::string job;      // of the scheduler; empty: none

  bool operator==(const Record&) const = default;
};
std::optional<Record> read_record(const StatePaths& paths, const std::string& stage);  // nothing: it is not done
void write_record(const StatePaths& paths, const std::string& stage, const Record& record);

// A stage under way, or one that was ended before it was done.
struct Attempt {
  std::string key;    // of its basis
  std::string token;  // in the environment of its processes, by which those left behind are found
  std::string host;
  double began = 0;                    // of the first attempt with this key
  double started = 0;                  // of this one
  double seconds = 0;                  // of the attempts before it
  int64_t number = 1;                  // 1: the first
  std::vector<std::string> half_made;  // that must go when it did not end well
  std::string trouble;                 // why it ended; empty: it runs, or was killed

  bool operator==(const Attempt&) const = default;
};
std::optional<Attempt> read_attempt(const StatePaths& paths, const std::string& stage);
void write_attempt(const StatePaths& paths, const std::string& stage, const Attempt& attempt);

}  // namespace lockstep::workflow
