// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/ranks.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/verbs/train/launch.h"
#include "lockstep/verbs/train/rank_error.h"

namespace lockstep::verbs {

std::optional<int> start_ranks(const char* verb, const base::Arguments& arguments,
                               const std::vector<std::string>& words) {
  const int64_t ranks = arguments.int_or("--ranks", 1);
  if (ranks < 1) throw base::Error(base::Blame::user, base::text("--ranks ", ranks), "give 1 or more");
  if (ranks == 1 || comm::launched_by_mpi()) return std::nullopt;
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto line = mpirun_line(program, verb, words, ranks, geteuid() == 0);
  std::fprintf(stderr, "+ %s\n", site::shell_words(line).c_str());
  return run_ranks(line);
}

int run_as_rank(comm::Group& group, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    const base::Error error = rank_error(thrown);
    if (group.size() == 1) throw error;
    // Rank 0 speaks first and ends the others; one that fails alone is heard all the same.
    if (group.rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(4));
    std::fprintf(stderr, "%s\n", error.message().c_str());
    group.abort(error.exit_code());
    throw error;  // g++ 12 does not see that abort() never returns
  }
}

}  // namespace lockstep::verbs
