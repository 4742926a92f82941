// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/plain_ranks.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/worker_slot.h"
#include "lockstep/ranks/world.h"
#include "lockstep/site/command.h"
#include "lockstep/site/load.h"

namespace lockstep::ranks {
namespace {

using base::text;

// Where the ranks tell of themselves: in the run, which every host sees, where it can be written; else on this host.
class HeartbeatsFolder {
 public:
  explicit HeartbeatsFolder(const base::Path& run) {
    const bool in_run = std::filesystem::is_directory(run) && ::access(run.c_str(), W_OK) == 0;
    const base::Path parent = in_run ? std::filesystem::absolute(run) : std::filesystem::temp_directory_path();
    std::string name = (parent / "ranks-XXXXXX").string();
    if (!::mkdtemp(name.data())) base::throw_errno(text("cannot make a folder in ", parent.string()));
    path_ = name;
  }
  ~HeartbeatsFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  HeartbeatsFolder(const HeartbeatsFolder&) = delete;
  HeartbeatsFolder& operator=(const HeartbeatsFolder&) = delete;
  const base::Path& path() const { return path_; }

 private:
  base::Path path_;
};

std::string fix_for_verb(const Fault& fault, const char* verb) {
  if (fault.kind == Fault::Kind::out_of_memory) return "use fewer --ranks, or --set evaluation.batch to a smaller one";
  return text("look at that host; nothing is half-written, the same `lockstep ", verb, "` starts over");
}

int watch_over(const char* verb, const std::vector<std::string>& words, const base::Path& run, int64_t ranks) {
  site::pass_busy_cores_on();
  const HeartbeatsFolder heartbeats(run);
  WorldPlan plan;
  plan.launcher = find_launcher(site::read_scheduler());
  plan.name = text(std::random_device{}());
  plan.run = heartbeats.path();
  plan.ranks = ranks;
  // `env`: every launcher passes words on, not every one the environment.
  std::vector<std::string> command{"env", text(kWorldVariable, "=", plan.name),
                                   text(kHeartbeatsVariable, "=", heartbeats.path().string()),
                                   std::filesystem::read_symlink("/proc/self/exe").string(), verb};
  command.insert(command.end(), words.begin(), words.end());
  plan.line = launch_line(plan.launcher, {}, ranks, command);
  std::fprintf(stderr, "+ %s\n", site::shell_words(plan.line).c_str());
  const SignalInbox inbox;
  StopWish wish;
  const WorldEnd end = run_world(plan, inbox, wish);
  if (!wish.why.empty()) return 128 + (wish.interrupts > 0 ? SIGINT : SIGTERM);
  if (!end.fault) return end.code;
  throw base::Error(base::Blame::machine, text(end.fault->what, "; all ranks were ended"),
                    fix_for_verb(*end.fault, verb));
}

}  // namespace

int share_over_ranks(const char* verb, const base::Arguments& arguments, const std::vector<std::string>& words,
                     const std::function<std::unique_ptr<comm::Group>()>& join,
                     const std::function<int(const Rank&)>& work) {
  const int64_t ranks = ranks_asked(arguments);
  const base::Path run = arguments.positional.empty() ? "" : arguments.positional.front();
  // The watchdog made a rank deaf to the wish to stop until it could hear it; here it simply ends.
  const auto until_told_to_stop = [&](const Rank& rank) {
    std::signal(SIGUSR1, SIG_DFL);
    return work(rank);
  };
  return run_on_ranks({.ranks = ranks,
                       .watch = [&] { return watch_over(verb, words, run, ranks); },
                       .work = [&] { return work_as_rank("", join, until_told_to_stop); }});
}

}  // namespace lockstep::ranks
