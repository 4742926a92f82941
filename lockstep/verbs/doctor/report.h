// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::verbs::doctor {

enum class Mark { ok, note, warn, wrong };  // wrong: something will fail; warn: it will be slow or fragile

// One thing found out, and the command that fixes it where something can be fixed.
struct Finding {
  Mark mark = Mark::ok;
  std::string what;
  std::string fix;

  bool operator==(const Finding&) const = default;
};

struct FindingGroup {
  std::string title;
  std::vector<Finding> findings;

  bool operator==(const FindingGroup&) const = default;
};

struct DoctorReport {
  std::string headline;              // host, system
  std::vector<std::string> verdict;  // what this machine is good for, in one or two lines; K40 and K80 come first
  std::vector<FindingGroup> groups;

  int64_t count(Mark mark) const;
  bool operator==(const DoctorReport&) const = default;
};

const char* name_of(Mark mark);  // "ok", "note", "warn", "wrong"

// The report for people: groups, marks, and at the end the commands to run, the most important first.
std::string to_text(const DoctorReport& report);
base::Json to_json(const DoctorReport& report);

}  // namespace lockstep::verbs::doctor
