// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/run/beat.h"

namespace lockstep::ranks {

// What the supervisor knows of one rank, by its own clock: hosts need not agree about the time.
struct Sighting {
  std::optional<run::Beat> beat;  // none: it has not said anything yet
  double silent = 0;              // seconds since its last word (or since the ranks were started)
  double still = 0;               // seconds since it last got on
};

// How long is too long, in seconds.
struct Patience {
  double hang = 50;  // with the beat (1 s) and the look (0.2 s) a hang is named within 60 s

  // Between two beats: the process is stopped, or its host is gone. At its end it may be busy with leaving.
  double silence(const run::Beat& beat) const;
  double start() const { return 6 * hang; }  // until the first word: libraries come from a busy file system
  // In the phase that this rank is in: some steps of a phase are longer than others, the first of all is unknown.
  double phase(const run::Beat& beat) const;
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

// The first fault among the ranks, the surest kind first: ended, silent, standing still. Nothing while all is well, or
// when a rank ended in a way that is its own affair (done, stopped in order, an error that it has told).
std::optional<Fault> judge(const std::vector<Sighting>& ranks, const Patience& patience);

}  // namespace lockstep::ranks
