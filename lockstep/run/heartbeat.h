// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/run/folder.h"

namespace lockstep::run {

// What a rank is doing. `data`: waiting for the next batch.
enum class Phase { loading, data, computing, evaluating, saving, ending };
const char* name_of(Phase phase);

// How the process of a rank ended.
struct RankEnd {
  int code = 0;                // its exit code, when no signal ended it
  int signal = 0;              // the signal that ended it; 0: none
  bool asked = false;          // its launcher had told it to go: the cause lies with another rank
  bool out_of_memory = false;  // the kernel killed for want of memory on that host meanwhile
  int64_t peak_bytes = 0;      // the most memory it held

  bool operator==(const RankEnd&) const = default;
};

// What one rank tells its supervisor: RUN/ranks/<rank>.heartbeat, see docs/formats/heartbeat.md.
struct Heartbeat {
  std::string world;  // which start of the ranks it belongs to
  int64_t rank = 0;
  Holder who;         // `since` is not kept
  int64_t count = 0;  // grows with every heartbeat: the rank's process runs
  int64_t moves = 0;  // grows when its training thread makes progress
  int64_t step = 0;   // done
  Phase phase = Phase::loading;
  double longest = 0;        // seconds, of earlier stays in this phase; 0: it is the first
  std::string call;          // the collective that it waits in; empty: none
  int64_t calls = 0;         // collectives started so far; in the same order on every rank
  int64_t answered = 0;      // of these, done
  bool call_failed = false;  // a collective ended in an error: a peer is gone
  bool calls_whole = true;   // false: it may wait in a collective that it does not tell (ranks on GPUs)
  bool stopped = false;      // by a signal (SIGSTOP), as the watchdog saw
  std::optional<RankEnd> end;

  bool operator==(const Heartbeat&) const = default;
};

base::Path heartbeat_path(const base::Path& run, int64_t rank);
// RUN/ranks/world: the name of the start that counts now. Ranks of any other start must end: a host that was cut off
// may reach its file system again long after others took over.
base::Path world_path(const base::Path& run);
// RUN/ranks/stop: which signal the supervisor passes on as SIGUSR1; empty: none so far.
base::Path stop_path(const base::Path& run);

// Rewrites the file in place, in one write of fixed size: no name appears or changes, which shared file systems would
// show late. Throws when the file cannot be written.
void write_heartbeat(const base::Path& path, const Heartbeat& heartbeat);
// None when nothing was written yet, or when it was read in the middle of a write.
std::optional<Heartbeat> read_heartbeat(const base::Path& path);

// The text of the file and back, open for their tests.
std::string to_record(const Heartbeat& heartbeat);
std::optional<Heartbeat> parse_record(std::string_view record);

}  // namespace lockstep::run
