// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

// The processors of this machine.
struct Processor {
  std::string model;  // as the kernel names it; empty: it does not
  int64_t sockets = 0;
  int64_t cores = 0;    // physical
  int64_t threads = 0;  // hardware threads
  int64_t usable = 0;   // threads this process may use: affinity and cgroup quota
  int64_t numa_nodes = 0;
  std::vector<std::string> vector_units;  // of avx2, avx512f, avx512_bf16, avx512_fp16, amx_bf16, in this order

  bool has(std::string_view unit) const;
  bool operator==(const Processor&) const = default;
};

Processor read_processor();

// The part that stands in /proc/cpuinfo: everything but `usable` and `numa_nodes`.
Processor parse_cpuinfo(std::string_view cpuinfo);

}  // namespace lockstep::site
