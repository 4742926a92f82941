// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/probe.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/manners.h"

namespace lockstep::site {
namespace {

std::vector<Storage> read_storages() {
  std::vector<Storage> all;
  std::vector<dev_t> devices;
  const auto add = [&](const char* role, const char* folder) {
    struct stat status {};
    if (!folder || !*folder || ::stat(folder, &status) != 0) return;
    const auto known = std::find(devices.begin(), devices.end(), status.st_dev);
    if (known != devices.end()) {
      Storage& earlier = all[static_cast<size_t>(known - devices.begin())];
      earlier.role += base::text(", ", role);
      return;
    }
    devices.push_back(status.st_dev);
    all.push_back(read_storage(role, folder));
  };
  add("here", ".");
  add("home", std::getenv("HOME"));
  const char* temporary = std::getenv("TMPDIR");
  add("temporary", temporary ? temporary : "/tmp");
  return all;
}

// `quota` exits with an error exactly when a limit is exceeded, which is when its words matter.
std::vector<std::string> read_quota() {
  std::vector<std::string> lines;
  if (!find_on_path("quota")) return lines;
  const auto answer = run_for_output({"sh", "-c", "quota -s; true"}, std::chrono::milliseconds(300));
  for (const auto& line : base::split(answer.value_or(""), '\n')) {
    if (!base::trim(line).empty()) lines.emplace_back(base::trim(line));
  }
  return lines;
}

}  // namespace

Probe probe_site() {
  Probe found;
  found.scheduler = read_scheduler();
  found.seconds_left = seconds_left();
  if (found.scheduler.login_node()) {
    found.partitions = read_partitions(found.scheduler.name);
    found.accounts = read_accounts();
  }
  found.software = read_software();
  found.processor = read_processor();
  found.memory = read_memory();
  found.gpus = read_gpus();
  found.storages = read_storages();
  if (!found.scheduler.login_node() && !found.storages.empty()) measure_rates(found.storages.front());
  found.limits = read_limits();
  found.quota = read_quota();
  found.threads = threads_allowed(found.processor.usable);
  found.niceness = ::getpriority(PRIO_PROCESS, 0);
  return found;
}

}  // namespace lockstep::site
