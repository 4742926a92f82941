// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

// One block of what `qstat -f`, `qstat -Qf`, `qstat -Bf` and `pbsnodes -av` print: a job, a queue, the server, a node.
struct PbsEntry {
  std::string name;                           // "7.head", "workq", "n1"
  std::map<std::string, std::string> values;  // "job_state" -> "R"

  std::string value(const std::string& key) const;  // empty: it is not there
  bool operator==(const PbsEntry&) const = default;
};

std::vector<PbsEntry> parse_pbs(std::string_view answer);

// Lines as they were before the server cut them at 78 characters, inside words and numbers too: what begins with a tab
// goes on with the line before.
std::string unfold(std::string_view answer);

// "187gb", "4194304kb", "2048" -> bytes, by powers of 1024; nothing for other words.
std::optional<int64_t> pbs_bytes(std::string_view words);
// "Mon Nov 16 14:20:11 2026", local time -> Unix seconds.
std::optional<int64_t> pbs_time(const std::string& words);

}  // namespace lockstep::site
