// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/file.h"

namespace lockstep::run {

using base::Path;

// Who writes to a run folder: the content of its `lock` file.
struct Holder {
  std::string host;
  std::string pid_space;  // the PID namespace: a pid of another container says nothing here
  int64_t pid = 0;
  int64_t pid_start = 0;  // start time of that process in clock ticks: a reused pid is not the holder
  std::string since;      // UTC, for people
  std::string job = {};   // of the scheduler; empty: none
  int64_t restarts = 0;   // how often the scheduler had started that job again: an earlier start is over

  bool operator==(const Holder&) const = default;
};

// The file names of a run: `runs/<name>/...`. Plain paths, nothing is touched.
struct RunPaths {
  Path root;

  Path job() const { return root / "job.json"; }    // resolved
  Path plan() const { return root / "plan.json"; }  // only when the run was planned
  Path journal() const { return root / "journal.jsonl"; }
  Path checkpoints() const { return root / "checkpoints"; }
  Path events() const { return root / "events"; }                                  // TensorBoard
  Path weights() const { return root / "weights.safetensors"; }                    // the result, written at the end
  Path previous_weights() const { return root / "weights.previous.safetensors"; }  // of a run that was lengthened
  Path evaluation() const { return root / "eval.json"; }
  Path pictures() const { return root / "eval"; }  // thumbnails of the worst mistakes
  Path report() const { return root / "report.html"; }
  Path profile() const { return root / "profile.json"; }  // of `train --profile`
  Path lock() const { return root / "lock"; }
};

// Within a run: what its supervisor and its ranks tell each other; the supervisor holds it like a run of its own.
inline Path supervisors_folder(const Path& run) {
  return run / "ranks";
}

// A run folder held for writing: made when absent, locked until the end of the scope. One process holds it (rank 0).
// The lock is a file, made atomically, that names host and pid; no file lock of the kernel, which network file systems
// may not have. A thread renews its time stamp every 5 s, so that a holder on another host is known to be dead after
// `kStaleSeconds`, for which the next one waits; on the same host the process table decides at once, and of one
// scheduler's job the count of its starts.
class RunFolder {
 public:
  static constexpr double kStaleSeconds = 60;

  // User error naming host and pid when another process holds it; machine error when it cannot be written. `say` is
  // told when this has to wait for a silent holder on another host.
  explicit RunFolder(const Path& root, const std::function<void(std::string_view)>& say = {});
  ~RunFolder();  // a folder that it made goes again when nothing was put there: a start that failed leaves none behind
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const RunPaths& paths() const { return paths_; }
  // Machine error when another process took the lock meanwhile (this one was stopped for long), or the folder is gone:
  // ask before a save.
  void ensure_held() const;

 private:
  class Heartbeat;
  RunPaths paths_;
  Holder self_;
  bool made_;  // the folder was not there
  std::unique_ptr<Heartbeat> heartbeat_;
};

// This process, as the lock file would name it.
Holder this_process();
// Whether that process lives. REQUIRES: it is one of this host and PID namespace (same_host).
bool is_running(const Holder& process);
bool same_host(const Holder& a, const Holder& b);
// Removes the lock of a holder that is known to be dead or shut out, so that nobody waits until it is stale. Leaves the
// lock of any other holder alone. A holder that is alive after all notices before its next save.
void break_lock(const Path& root, const Holder& dead);

// Machine error when the folder of a run under way is gone; nothing while its file system does not answer.
void ensure_there(const Path& root);

// Who holds the folder now; none when it is free or its lock is stale.
std::optional<Holder> read_holder(const Path& root);

// An existing run for reading, without a lock. User error when there is no journal or job in it.
RunPaths open_run(const Path& root);

}  // namespace lockstep::run
