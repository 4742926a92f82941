// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/link.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/chain/submit.h"
#include "lockstep/run/folder.h"
#include "lockstep/site/hosts.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/remote_shell.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;

std::atomic<pid_t> g_command{0};    // only a global reaches a signal handler
std::atomic<int> g_early{0};        // a signal that came before the command had started
std::atomic<bool> g_gently{false};  // the command is an mpirun, which answers SIGTERM and the like by killing its ranks

extern "C" void hand_on(int signal) {
  const pid_t command = g_command;
  if (command > 0) {
    ::kill(command, g_gently && signal != SIGINT ? SIGUSR1 : signal);
  } else {
    g_early = signal;
  }
}

// From the first moment of a link: a signal that comes before the training has begun must not end the link without a
// successor in the queue.
void hear_signals() {
  struct sigaction action {};
  action.sa_handler = hand_on;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP, SIGXCPU, SIGINT}) ::sigaction(signal, &action, nullptr);
}

bool is_mpirun(const std::vector<std::string>& command) {
  return base::Path(command.at(0)).filename() == "mpirun";
}

using Jobs = std::vector<site::BatchJob>;

// The jobs of the chain that wait or run, without `mine`; nothing when the scheduler does not answer.
std::optional<Jobs> others(const Chain& chain, const std::string& mine) {
  std::vector<std::string> asked;
  for (const auto& id : chain.queued) {
    if (id != mine) asked.push_back(id);
  }
  auto jobs = site::find_jobs(chain.terms.scheduler, chain.terms.name, asked);
  if (jobs) std::erase_if(*jobs, [&](const site::BatchJob& job) { return job.id == mine || !job.active(); });
  return jobs;
}

const site::BatchJob* running_one(const Jobs& jobs) {
  const auto found = std::find_if(
      jobs.begin(), jobs.end(), [](const site::BatchJob& job) { return job.state == site::BatchJob::State::running; });
  return found == jobs.end() ? nullptr : &*found;
}

class Link {
 public:
  Link(base::Path run, const LinkOptions& options)
      : run_(std::move(run)), options_(options), chain_(read_chain(run_)), record_(run_) {
    const site::Scheduler scheduler = site::read_scheduler();
    if (!scheduler.in_allocation()) {
      throw Error(Blame::user, "submit --link stands in the scripts of a chain: this is no job",
                  "lockstep submit JOB --on MACHINE queues one");
    }
    job_ = scheduler.job_id;
    ::unsetenv(site::kJobEndVariable);  // of the link that queued this one, whose environment came along
    step_ = saved_step(run_);
    const ChainLink* before = chain_.find(job_);  // the scheduler started this job again
    number_ = before ? before->number : static_cast<int64_t>(chain_.links.size()) + 1;
  }

  int run(const std::vector<std::string>& command) {
    if (!chain_.over.empty()) {
      options_.say(text("the chain is over (", chain_.over, "): nothing to do"));
      return cancel_others(), base::kExitDone;
    }
    if (const std::string why = why_not(); !why.empty()) return end(why), static_cast<int>(Blame::machine);
    if (const std::string words = memory_words(); !words.empty()) {
      return end("memory", words), static_cast<int>(Blame::user);
    }
    const auto rest = others(chain_, job_);
    if (const auto* other = rest ? running_one(*rest) : nullptr) {
      options_.say(text("job ", other->id, " of this chain is running: it goes on, this one ends"));
      return base::kExitDone;
    }
    begun_ = base::unix_seconds();
    options_.say(text("link ", number_, " of at most ", chain_.terms.max_links, ", job ", job_, " on ",
                      site::host_name(), ", after step ", step_));
    // Before all else: a node that dies here leaves somebody to go on. Started again by the scheduler this job may have
    // one already; where nobody answers whether it still stands, none is better than two.
    const bool followed = std::count(chain_.followed.begin(), chain_.followed.end(), job_) > 0;
    const auto successor = (rest ? rest->empty() : !followed) ? queue_successor() : std::nullopt;
    record_.begin(job_, number_, step_, site::host_name());
    bool freed = false;
    for (const auto& held : {run_, run::supervisors_folder(run_)}) freed |= rest && free_dead_lock(held, chain_, *rest);
    if (freed) options_.say("took the run over from a job that is no more");
    if (successor) keep_away({*successor});
    tell_end();
    const site::RemoteShell remote_shell(site::read_scheduler());  // for an mpirun in front of a container
    const int code = options_.run(with_environment(command));
    return conclude(code);
  }

 private:
  // The cap, and links that bring nothing.
  std::string why_not() const {
    if (number_ > chain_.terms.max_links) return "cap";
    if (!chain_.find(job_) && chain_.idle_links(step_) >= chain_.terms.patience) return "no progress";
    return "";
  }

  // The link before could not know: PBS ends a job for its memory with the signal that asks it to save.
  std::string memory_words() const {
    const auto before = std::find_if(chain_.links.rbegin(), chain_.links.rend(),
                                     [&](const ChainLink& link) { return link.job != job_; });
    if (before == chain_.links.rend() || chain_.find(job_)) return "";
    const site::JobEnd ended = site::how_ended(chain_.terms.scheduler, before->job);
    const auto killed = memory_kill(run_, chain_.terms, before->job, ended);
    return killed ? text("job ", before->job, " used more memory than it had asked for (", *killed,
                         "): the next would end alike. Ask for more and submit it again: --site scheduler.memory=BYTES")
                  : "";
  }

  // Asked here once, for all ranks and all their restarts. A scheduler that does not answer on this node leaves the
  // walltime that was asked for, counted from now: a few seconds too long, and the stop clock has a margin.
  void tell_end() const {
    const auto left = site::seconds_left();
    double seconds = left ? static_cast<double>(left->count()) : chain_.terms.walltime;
    if (seconds <= 0) return;
    // From the last save to the end of the job mpirun takes its daemons back from every node: jobs of two nodes were
    // seen to end behind their walltime.
    constexpr double kLeave = 10;
    if (site::allocated_hosts(site::read_scheduler()).size() > 1) seconds -= std::min(kLeave, seconds / 10);
    ::setenv(site::kJobEndVariable, text(static_cast<int64_t>(base::unix_seconds() + seconds)).c_str(), 1);
  }

  // Its job, when there is one now. Never one that is not written down: on a full disk every link would fail and leave
  // another behind, which nobody counts.
  std::optional<std::string> queue_successor() {
    if (chain_.terms.submit_from != spec::SubmitFrom::job || number_ >= chain_.terms.max_links) return std::nullopt;
    const auto submitted = queue_script(run_, chain_.terms.scheduler, {site::Waits::For::failure_of, job_});
    if (!submitted.id.empty()) {
      chain_.queued.push_back(submitted.id);  // PBS finds jobs by their ids alone
      try {
        record_.queued(submitted.id, job_);
      } catch (const Error&) {
        site::cancel_jobs(chain_.terms.scheduler, {submitted.id});
        throw;
      }
      return submitted.id;
    }
    record_.refused(job_, submitted.refusal);
    options_.say(
        text("could not queue the next link: ", submitted.refusal,
             "\n  this one trains all the same; then go on by hand, or where the site refuses jobs from inside "
             "a job: lockstep submit ... --site submit_from=login"));
    return std::nullopt;
  }

  // Keeps waiting links away from hosts on which ranks failed again and again. The newest of them alone: a job that may
  // run nowhere would wait for good.
  void keep_away(const std::vector<std::string>& jobs) {
    constexpr size_t kMost = 4;
    const auto& bad = chain_.bad_hosts;
    if (bad.empty()) return;
    const std::vector<std::string> hosts(bad.size() > kMost ? bad.end() - kMost : bad.begin(), bad.end());
    for (const auto& id : jobs) {
      const bool taken = site::exclude_hosts(chain_.terms.scheduler, id, hosts);
      options_.say(
          text("job ", id, taken ? " will not run on " : " could not be kept away from ", base::join(hosts, ", ")));
    }
  }

  int conclude(int code) {
    step_ = std::max(step_, saved_step(run_));
    record_.finish(job_, code, step_);
    chain_ = read_chain(run_);  // somebody may have cancelled it meanwhile
    if (!chain_.over.empty()) {
      options_.say(text("the chain is over (", chain_.over, "): no link goes on"));
      cancel_others();
      return code == base::kExitRequeue ? base::kExitDone : code;
    }
    switch (verdict_of(code)) {
      case Verdict::done:
        end("done");
        return base::kExitDone;
      case Verdict::failed:
        if (other_nodes_may_do()) break;
        end("failed");
        return code;
      case Verdict::next:
        break;
    }
    if (number_ >= chain_.terms.max_links) {
      end("cap");
    } else {
      go_on(code);
    }
    return code == base::kExitRequeue ? kExitNextLink : code;
  }

  // Whether the ranks could not be kept going on these nodes, which says nothing of others. A person must act where
  // memory was missing, or where nothing of this run has ever started. The hosts to blame are left out from now on.
  bool other_nodes_may_do() {
    const auto refused = given_up(run_, begun_);
    if (!refused || refused->why == "out_of_memory" || (refused->why == "not_started" && step_ == 0)) return false;
    if (!refused->hosts.empty()) {
      record_.exclude(job_, refused->hosts);
      chain_ = read_chain(run_);
    }
    return true;
  }

  // A controller that died may have forgotten the successor: better to look once more.
  void go_on(int code) {
    const auto rest = others(chain_, job_);
    std::vector<std::string> waiting;
    for (const auto& job : rest.value_or(Jobs{})) waiting.push_back(job.id);
    if (rest && waiting.empty()) {
      if (const auto queued = queue_successor()) waiting.push_back(*queued);
    }
    keep_away(waiting);
    const char* next = !rest              ? "the scheduler does not say whether the next link still waits"
                       : !waiting.empty() ? "the next link goes on"
                                          : "no link is left in the queue, submit it again to go on";
    options_.say(text("stopped after step ", step_, " (exit code ", code, "): ", next));
  }

  void end(const std::string& why, const std::string& words = "") {
    record_.close(why, step_, chain_.terms, words);
    if (!words.empty()) options_.say(words);
    if (why == "cap") {
      options_.say(
          text("the chain has had its ", chain_.terms.max_links, " links (--max-links): submit it again to go on"));
    } else if (why == "no progress") {
      options_.say(text(chain_.terms.patience,
                        " links in a row brought no new step (--patience): look into the link-*.out "
                        "files of the run; a longer --walltime may be what is missing"));
    }
    cancel_others();
  }

  // A site may forbid this inside a job: a link that finds its chain over does nothing and ends.
  void cancel_others() {
    std::vector<std::string> ids;
    for (const auto& job : others(chain_, job_).value_or(Jobs{})) ids.push_back(job.id);
    if (!OpenFile(chain_file(run_)).is_ours_alone()) {
      options_.say(text(chain_file(run_).string(), " can be written by others: no job that it names is cancelled"));
    } else if (!site::cancel_jobs(chain_.terms.scheduler, ids)) {
      options_.say("the links still in the queue could not be cancelled: each will see that the chain is over");
    }
  }

  base::Path run_;
  const LinkOptions& options_;
  Chain chain_;
  ChainRecord record_;
  std::string job_;
  int64_t number_ = 0;
  int64_t step_ = 0;
  double begun_ = 0;  // Unix seconds
};

}  // namespace

Verdict verdict_of(int code) {
  if (code == base::kExitDone) return Verdict::done;
  const bool told = code == static_cast<int>(Blame::user) || code == static_cast<int>(Blame::machine) ||
                    code == static_cast<int>(Blame::bug) || code == 127;
  return told ? Verdict::failed : Verdict::next;
}

std::vector<std::string> with_environment(std::vector<std::string> command) {
  if (!is_mpirun(command)) return command;
  const auto passed = site::pass_words();
  command.insert(command.begin() + 1, passed.begin(), passed.end());
  return command;
}

bool free_dead_lock(const base::Path& run, const Chain& chain, const std::vector<site::BatchJob>& alive) {
  const auto holder = run::read_holder(run);
  // We decide nothing about somebody else's process, nor about one of a job that is still on its way out.
  if (!holder || holder->host == site::host_name() || !chain.find(holder->job)) return false;
  if (std::any_of(alive.begin(), alive.end(), [&](const site::BatchJob& job) { return job.id == holder->job; })) {
    return false;
  }
  run::break_lock(run, *holder);
  return true;
}

int run_and_hand_on_signals(const std::vector<std::string>& command) {
  hear_signals();
  if (g_early.exchange(0) != 0) return base::kExitRequeue;  // a program that has just begun would die of it
  g_gently = is_mpirun(command);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ) != 0) return 127;
  g_command = child;
  if (const int early = g_early.exchange(0); early != 0) hand_on(early);
  int status = 0;
  pid_t ended = 0;
  // Asleep rather than in waitpid(): a handler runs at once then, under the thread sanitizer as well.
  while ((ended = ::waitpid(child, &status, WNOHANG)) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (ended < 0) base::throw_errno("waiting for the training");
  g_command = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_link(const base::Path& run, const std::vector<std::string>& command, const LinkOptions& options) {
  hear_signals();
  return Link(run, options).run(command);
}

}  // namespace lockstep::chain
