// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

// Optuna's journal file (JournalFileBackend of Optuna 5), shared with whoever else works on it: Optuna, other nodes.
// One JSON object a line, appended and synced under the lock FILE.lock, which is a symbolic link as Optuna's is: made
// atomically on every file system, NFS too, and broken when nobody has renewed it for 30 s. A last line that a kill has
// torn is cut off before anything is appended: Optuna would glue the next one to it.
class StudyFile {
 public:
  // The file is made when absent. `study` names the study in it that is of interest.
  StudyFile(base::Path path, const std::string& study, std::string worker);

  const Trials& trials() const { return trials_; }
  const std::string& worker() const { return worker_; }
  const base::Path& path() const { return path_; }

  void read();  // what others have appended

  // Under the lock: reads to the end, then lets `work` look at the trials and add records, which count at once, and
  // appends them in one write, synced. The fields are what stands behind the worker: R"("trial_id":3,"state":1)".
  class Update {
   public:
    explicit Update(StudyFile& file) : file_(file) {}
    const Trials& trials() const { return file_.trials_; }
    const std::string& worker() const { return file_.worker_; }
    void add(int64_t operation, const std::string& fields);

   private:
    friend class StudyFile;
    StudyFile& file_;
    std::string lines_;
    int64_t count_ = 0;
  };
  void update(const std::function<void(Update&)>& work);

  // The study of that name; made when it is not there, which is told by true.
  bool make_study(bool maximize);

 private:
  void cut_torn_line() const;

  base::Path path_;
  std::string study_;
  std::string worker_;
  Trials trials_;
  uint64_t offset_ = 0;  // of the first line not read yet
  int64_t lines_ = 0;
};

// Seconds since 1970 as Optuna writes times: "2026-11-16T12:00:00.000000+00:00".
std::string iso_time(double unix_seconds);
double unix_time(const std::string& iso);  // 0: none

// The folder that a worker holds (run::RunFolder) while it lives, beside the journal.
inline base::Path worker_folder(const base::Path& journal, const std::string& worker) {
  return journal.parent_path() / "workers" / worker;
}

// The lock of a file between processes and hosts, as Optuna takes it. `folder`, two levels below the file's own, is
// what this process holds (run::RunFolder) while it lives; where it is there, the link leads through it: nobody waits
// for the lock of a process that is known to be dead. A process takes one at a time.
class LinkLock {
 public:
  static constexpr double kGraceSeconds = 30;

  explicit LinkLock(const base::Path& file, const base::Path& folder = {}, double grace = kGraceSeconds);
  ~LinkLock();
  LinkLock(const LinkLock&) = delete;
  LinkLock& operator=(const LinkLock&) = delete;
  // Machine error when somebody broke it meanwhile (this process was stopped for long).
  void ensure_held() const;

 private:
  base::Path lock_;
  uint64_t inode_ = 0;
};

}  // namespace lockstep::tune
