// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/processor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/kernel_file.h"

namespace lockstep::site {

bool Processor::has(std::string_view unit) const {
  return std::find(vector_units.begin(), vector_units.end(), unit) != vector_units.end();
}

Processor parse_cpuinfo(std::string_view cpuinfo) {
  Processor found;
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  std::string socket;
  for (const auto& line : base::split(cpuinfo, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = base::trim(std::string_view(line).substr(0, colon));
    const std::string value(base::trim(std::string_view(line).substr(colon + 1)));
    if (key == "processor") ++found.threads;
    if (key == "model name" && found.model.empty()) found.model = value;
    if (key == "physical id") sockets.insert(socket = value);
    if (key == "core id") cores.emplace(socket, value);
    if (key == "flags" && found.vector_units.empty()) {
      const auto flags = base::split(value, ' ');
      for (const char* unit : {"avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16"}) {
        if (std::find(flags.begin(), flags.end(), unit) != flags.end()) found.vector_units.emplace_back(unit);
      }
    }
  }
  // Virtual machines and other architectures leave the ids out.
  found.sockets = std::max<int64_t>(1, static_cast<int64_t>(sockets.size()));
  found.cores = cores.empty() ? found.threads : static_cast<int64_t>(cores.size());
  return found;
}

Processor read_processor() {
  Processor found = parse_cpuinfo(kernel_text("/proc/cpuinfo"));
  found.usable = usable_cores();
  found.numa_nodes =
      std::max<int64_t>(1, static_cast<int64_t>(numbered_names("/sys/devices/system/node", "node").size()));
  return found;
}

}  // namespace lockstep::site
