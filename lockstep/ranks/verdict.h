// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/run/heartbeat.h"

namespace lockstep::ranks {

// What the supervisor knows of one rank, by its own clock: hosts need not agree about the time.
struct Observation {
  std::optional<run::Heartbeat> heartbeat;  // none: it has not said anything yet
  double silent = 0;                        // seconds since its last word (or since the ranks were started)
  double still = 0;                         // seconds since it last made progress
};

// After how many seconds a rank is at fault.
struct Patience {
  double hang = 50;  // with the heartbeat (1 s) and the look (0.2 s) a hang is named within 60 s

  // How long a rank may be silent before its process is taken to be stopped, or its host gone. Longer for a rank that
  // is ending.
  double silence(const run::Heartbeat& heartbeat) const;
  double start() const { return 6 * hang; }  // until the first word: libraries come from a busy file system
  // How long this rank may stay in its phase: some steps are longer than others, and the length of the first is
  // unknown.
  double phase(const run::Heartbeat& heartbeat) const;
};

// Why the ranks cannot go on as they are. Enumerators are spelt as in the journal.
struct Fault {
  enum class Kind { dead, out_of_memory, stopped, silent, hung, network, not_started, launcher };
  Kind kind = Kind::dead;
  int64_t rank = -1;   // -1: no single one, or not known which
  std::string host;    // of that rank; empty: not known
  int64_t step = 0;    // done by then
  std::string call;    // the collective that the others wait in; empty: none
  int64_t calls = 0;   // its number
  double seconds = 0;  // it took to notice, at most
  std::string what;    // the sentence for people, with all of the above

  base::Json to_json() const;
};
const char* name_of(Fault::Kind kind);

// The verdict over all observations: the first fault, the surest kind first (ended, silent, standing still). Nothing
// while all is well, or when a rank ended by itself (done, stopped in order, an error that it has reported).
std::optional<Fault> find_fault(const std::vector<Observation>& ranks, const Patience& patience);

}  // namespace lockstep::ranks
