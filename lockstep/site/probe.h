// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/site/accounts.h"
#include "lockstep/site/limits.h"
#include "lockstep/site/memory.h"
#include "lockstep/site/nvml.h"
#include "lockstep/site/partitions.h"
#include "lockstep/site/processor.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/site/software.h"
#include "lockstep/site/storage.h"

namespace lockstep::site {

// Everything that can be known about this machine in about a second, without a CUDA context and without torch.
struct Probe {
  Software software;
  Scheduler scheduler;
  std::optional<std::chrono::seconds> seconds_left;  // of the allocation
  std::vector<Partition> partitions;                 // of the cluster; asked on a login node only
  std::vector<Account> accounts;                     // that this user may charge; likewise
  Processor processor;
  Memory memory;
  GpuReport gpus;
  std::vector<Storage> storages;  // "here" first; folders on one file system stand once
  Limits limits;
  std::vector<std::string> quota;  // what `quota` prints, where it is installed
  int64_t threads = 0;             // that a verb may use here (2 on a login node)
  int niceness = 0;
};

// Never throws for something that is missing: that is what the probe is to find out. On a login node it writes nothing
// to any disk.
Probe probe_site();

}  // namespace lockstep::site
