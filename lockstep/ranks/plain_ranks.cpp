// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/plain_ranks.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/post.h"
#include "lockstep/ranks/rank_error.h"
#include "lockstep/ranks/world.h"
#include "lockstep/site/command.h"

namespace lockstep::ranks {
namespace {

using base::text;

// Where the ranks tell of themselves: in the run, which every host sees, where it can be written; else on this host.
class BeatsFolder {
 public:
  explicit BeatsFolder(const base::Path& run) {
    const bool in_run = std::filesystem::is_directory(run) && ::access(run.c_str(), W_OK) == 0;
    const base::Path parent = in_run ? std::filesystem::absolute(run) : std::filesystem::temp_directory_path();
    std::string name = (parent / "ranks-XXXXXX").string();
    if (!::mkdtemp(name.data())) base::throw_errno(text("cannot make a folder in ", parent.string()));
    path_ = name;
  }
  ~BeatsFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  BeatsFolder(const BeatsFolder&) = delete;
  BeatsFolder& operator=(const BeatsFolder&) = delete;
  const base::Path& path() const { return path_; }

 private:
  base::Path path_;
};

std::string fix_for(const Fault& fault, const char* verb) {
  if (fault.kind == Fault::Kind::out_of_memory) return "use fewer --ranks, or --set evaluation.batch to a smaller one";
  return text("look at that host; nothing is half-written, the same `lockstep ", verb, "` starts anew");
}

int watch_over(const char* verb, const std::vector<std::string>& words, const base::Path& run, int64_t ranks) {
  const BeatsFolder beats(run);
  WorldPlan plan;
  plan.launcher = find_launcher(site::read_scheduler());
  plan.name = text(std::random_device{}());
  plan.run = beats.path();
  plan.ranks = ranks;
  // `env`: every launcher passes words on, not every one the environment.
  std::vector<std::string> command{"env", text(kWorldVariable, "=", plan.name),
                                   text(kBeatsVariable, "=", beats.path().string()),
                                   std::filesystem::read_symlink("/proc/self/exe").string(), verb};
  command.insert(command.end(), words.begin(), words.end());
  plan.line = launch_line(plan.launcher, {}, ranks, command);
  std::fprintf(stderr, "+ %s\n", site::shell_words(plan.line).c_str());
  const SignalInbox inbox;
  StopWish wish;
  const WorldEnd end = run_world(plan, inbox, wish);
  if (!wish.why.empty()) return 128 + (wish.interrupts > 0 ? SIGINT : SIGTERM);
  if (!end.fault) return end.code;
  throw base::Error(base::Blame::machine, text(end.fault->what, "; all ranks were ended"), fix_for(*end.fault, verb));
}

}  // namespace

std::optional<int> start_ranks(const char* verb, const base::Arguments& arguments,
                               const std::vector<std::string>& words) {
  if (const auto post = my_post("")) {
    if (const auto code = keep_rank(*post)) {
      std::fflush(nullptr);
      ::_exit(*code);  // the keeper has nothing to take apart
    }
    return std::nullopt;
  }
  const int64_t ranks = arguments.int_or("--ranks", 1);
  if (ranks < 1) throw base::Error(base::Blame::user, text("--ranks ", ranks), "give 1 or more");
  if (ranks == 1 || comm::launched_by_mpi()) return std::nullopt;
  return watch_over(verb, words, arguments.positional.empty() ? "" : arguments.positional.front(), ranks);
}

int run_as_rank(comm::Group& group, const std::function<int(run::Activity&)>& body) {
  run::Activity activity;
  const CallsWatched watched(activity, group);
  std::unique_ptr<run::Pulse> pulse;
  if (const auto post = my_post("")) {
    pulse = std::make_unique<run::Pulse>(post->beat, post->world, post->rank, activity);
  }
  try {
    const int code = body(activity);
    activity.enter(run::Phase::ending);
    return code;
  } catch (const std::exception& thrown) {
    const base::Error error = rank_error(thrown);
    if (group.size() == 1) throw error;
    // Rank 0 speaks first and ends the others; one that fails alone is heard all the same.
    if (group.rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(4));
    std::fprintf(stderr, "%s\n", error.message().c_str());
    if (pulse) pulse->beat_now();
    group.abort(error.exit_code());
    throw error;  // g++ 12 does not see that abort() never returns
  }
}

}  // namespace lockstep::ranks
