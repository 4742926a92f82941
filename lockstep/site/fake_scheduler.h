// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "lockstep/base/file.h"

namespace lockstep::site {

// For tests: within its scope PATH holds only the commands installed here and no scheduler variable is set.
class FakeScheduler {
 public:
  FakeScheduler() {
    for (const char* name :
         {"PATH", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION", "SLURM_JOB_NODELIST", "SLURM_NTASKS",
          "SLURM_RESTART_COUNT", "SLURM_SUBMIT_DIR", "SLURM_JOB_END_TIME", "LOCKSTEP_JOB_END", "PBS_JOBID", "PBS_QUEUE",
          "PBS_NODEFILE", "PBS_O_WORKDIR", "OMP_NUM_THREADS"}) {
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
  void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

 private:
  base::TemporaryFolder folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace lockstep::site
