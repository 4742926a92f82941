// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/json.h"

namespace lockstep::verbs::bench {

// Stands in front of the entry of each <name>_command.cpp of a bench: the words behind `lockstep bench <name>`; returns
// the exit code; throws base::Error. The row in benches.def makes it known.
//   LOCKSTEP_BENCH(step)(const std::vector<std::string>& words) { ... }
#define LOCKSTEP_BENCH(name) int bench_command_##name

#define BENCH(name, summary) LOCKSTEP_BENCH(name)(const std::vector<std::string>& words);
#include "lockstep/verbs/bench/benches.def"
#undef BENCH

// Where a bench says how far it is: standard error.
void say_progress(std::string_view line);

// The document of a job on synthetic images, by --model, --batch, --image-size, --optimizer and --precision as far as
// the bench takes them.
base::Json synthetic_job(const base::Arguments& arguments, int64_t batch, int64_t pixels);

// "lockstep bench <name> <words>": the `command` of a row.
std::string bench_line(const std::string& name, const std::vector<std::string>& words);

// site::refuse_on_login_node for `lockstep bench <name> <words>`; `arguments` know --here.
void refuse_bench_on_login_node(const std::string& name, const std::vector<std::string>& words,
                                const base::Arguments& arguments);

}  // namespace lockstep::verbs::bench
