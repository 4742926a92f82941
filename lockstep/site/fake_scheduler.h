// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"

namespace lockstep::site {

// For tests: what a real PBS server printed on this command (tests/pbs/recorded).
inline std::string recorded_answer(const std::string& command) {
  const Answer answer = ask({"/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-SE",
                             "tests/pbs/recorded.py", "--say", command},
                            std::chrono::seconds(20));
  base::ensure(answer.good(), "this command was recorded");
  return answer.out;
}

// For tests: says and counts in the test's output that an answer of PBS is made up after its documentation, because
// nobody has recorded it.
inline void note_unrecorded(const std::string& command, const std::string& why) {
  static int so_far = 0;
  std::printf("[ unrecorded ] %d: %s: %s\n", ++so_far, command.c_str(), why.c_str());
}

// For tests: within its scope PATH holds only the commands installed here and no scheduler variable is set.
class FakeScheduler {
 public:
  FakeScheduler() {
    for (const char* name :
         {"PATH", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION", "SLURM_JOB_NODELIST", "SLURM_NTASKS",
          "SLURM_RESTART_COUNT", "SLURM_SUBMIT_DIR", "SLURM_JOB_END_TIME", "LOCKSTEP_JOB_END", "PBS_JOBID", "PBS_QUEUE",
          "PBS_NODEFILE", "PBS_O_WORKDIR", "PBS_O_PATH", "PBS_JOBFS", "OMP_NUM_THREADS", "LOCKSTEP_REMOTE_SHELL"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    ::setenv("PATH", folder_.path().c_str(), 1);
  }
  ~FakeScheduler() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  FakeScheduler(const FakeScheduler&) = delete;
  FakeScheduler& operator=(const FakeScheduler&) = delete;

  void install(const std::string& command, const std::string& prints = "") {
    install_script(command, "echo '" + prints + "'");
  }
  void install_script(const std::string& command, const std::string& lines) {
    const base::Path file = folder_.path() / command;
    base::write_file(file, "#!/bin/sh\n" + lines + "\n");
    ::chmod(file.c_str(), 0755);
  }

  // PBS's commands, which answer with what a real server said; rules "PATTERN => RECORDED COMMAND" for those that name
  // the test's own scripts and ids. What was not recorded fails, and unrecorded_calls() tells of it.
  void install_recorded(const std::vector<std::string>& rules = {}) {
    std::vector<std::string> words{"/usr/bin/env",
                                   "PATH=/usr/local/bin:/usr/bin:/bin",
                                   "python3",
                                   "-SE",
                                   "tests/pbs/recorded.py",
                                   "--install",
                                   folder_.path().string()};
    words.insert(words.end(), rules.begin(), rules.end());
    const Answer answer = ask(words, std::chrono::seconds(20));
    base::ensure(answer.good(), base::text("the recorded server is installed: ", answer.err));
  }
  std::string calls() const { return log("calls"); }
  std::string unrecorded_calls() const { return log("unrecorded"); }

  void install_unrecorded(const std::string& command, const std::string& lines, const std::string& why) {
    note_unrecorded(command, why);
    install_script(command, lines);
  }
  void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

 private:
  std::string log(const char* name) const {
    return std::filesystem::exists(folder_.path() / name) ? base::read_file(folder_.path() / name) : "";
  }

  base::TemporaryFolder folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace lockstep::site
