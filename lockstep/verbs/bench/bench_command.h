// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/json.h"

namespace lockstep::verbs {

// Stands in front of the entry of each <name>_command.cpp of a bench: the words behind `lockstep bench <name>`; returns
// the exit code; throws base::Error. The row in benches.def makes it known.
//   LOCKSTEP_BENCH(step)(const std::vector<std::string>& words) { ... }
#define LOCKSTEP_BENCH(name) int bench_command_##name

#define BENCH(name, summary) LOCKSTEP_BENCH(name)(const std::vector<std::string>& words);
#include "lockstep/verbs/bench/benches.def"
#undef BENCH

// What --json asks for: writes the rows to the file, or prints them for "-". True when they were printed: then nothing
// else may be.
bool give_rows(const base::Arguments& arguments, const base::Json& rows);

// "lockstep bench <name> <words>": the `command` of a row.
std::string bench_line(const std::string& name, const std::vector<std::string>& words);

// site::refuse_on_login_node for `lockstep bench <name> <words>`; `arguments` know --here.
void refuse_bench_on_login_node(const std::string& name, const std::vector<std::string>& words,
                                const base::Arguments& arguments);

}  // namespace lockstep::verbs
