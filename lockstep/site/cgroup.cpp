// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/cgroup.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "lockstep/base/text.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/kernel_file.h"

namespace lockstep::site {
namespace {

std::optional<double> limit_in(std::string_view digits) {
  double value = 0;
  const std::string_view word = base::trim(digits);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end == word.data()) return std::nullopt;
  return value;
}

using LimitOf = std::function<std::optional<double>(const std::string& folder)>;

// A limit binds from any level above: the least over the path and its parents.
std::optional<double> tightest(const std::string& root, std::string path, const LimitOf& limit_of) {
  std::optional<double> least;
  while (true) {
    const auto limit = limit_of(root + path);
    if (limit && (!least || *limit < *least)) least = limit;
    if (path.empty() || path == "/") return least;
    path.resize(path.rfind('/'));
  }
}

std::optional<double> least_of(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

std::string cgroup_path(const std::string& proc_self_cgroup, const std::string& controller) {
  for (const auto& line : base::split(proc_self_cgroup, '\n')) {
    const auto fields = base::split(line, ':');
    if (fields.size() < 3) continue;
    const auto names = base::split(fields[1], ',');
    if (std::find(names.begin(), names.end(), controller) != names.end()) return fields[2];
  }
  return "";
}

std::optional<uint64_t> cgroup_memory_limit() {
  constexpr double kNoLimit = 1LL << 60;  // version 1 writes a huge number for "none"
  const std::string self = kernel_text("/proc/self/cgroup");
  const auto read = [](const char* file) {
    return [file](const std::string& folder) { return limit_in(kernel_text(folder + file)); };
  };
  const auto limit =
      least_of(tightest("/sys/fs/cgroup", cgroup_path(self, ""), read("/memory.max")),
               tightest("/sys/fs/cgroup/memory", cgroup_path(self, "memory"), read("/memory.limit_in_bytes")));
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  return static_cast<uint64_t>(*limit);
}

std::optional<double> cgroup_cpu_quota() {
  const std::string self = kernel_text("/proc/self/cgroup");
  const auto version2 = [](const std::string& folder) { return quota_cores(kernel_text(folder + "/cpu.max")); };
  const auto version1 = [](const std::string& folder) {
    const std::string quota = kernel_text(folder + "/cpu.cfs_quota_us");
    return quota_cores(base::text(base::trim(quota), " ", kernel_text(folder + "/cpu.cfs_period_us")));
  };
  return least_of(tightest("/sys/fs/cgroup", cgroup_path(self, ""), version2),
                  tightest("/sys/fs/cgroup/cpu", cgroup_path(self, "cpu"), version1));
}

}  // namespace lockstep::site
