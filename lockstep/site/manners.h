// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

constexpr int64_t kLoginThreads = 2;
constexpr int kLoginNice = 19;

// True where a scheduler's commands are on PATH and this process is in no allocation of it.
bool is_login_node();

// On a login node: nice 19 and OMP_NUM_THREADS=2 for this process and its children. Elsewhere: nothing.
// main calls it before every verb, so before any thread or torch call. Returns the number of threads a verb may use.
int64_t behave_on_login_node();

// Gives OMP_NUM_THREADS and OMP_WAIT_POLICY back the values that this process was started with (none, or the user's):
// a batch job inherits the environment of the process that submits it, and it is no login node.
void forget_manners();

// `cores` elsewhere, at most kLoginThreads on a login node.
int64_t threads_allowed(int64_t cores);

// User error on a login node unless `here` (the verb's --here): work for a compute node. The fix is the submit line for
// `lockstep <verb> <words>`, quoted for a shell. With `here` it behaves and returns.
void refuse_on_login_node(std::string_view verb, const std::vector<std::string>& words, bool here,
                          std::chrono::seconds walltime = std::chrono::hours(24));

}  // namespace lockstep::site
