// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/supervisor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <random>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/worker_slot.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/journal.h"
#include "lockstep/site/command.h"
#include "lockstep/site/remote_shell.h"

namespace lockstep::ranks {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr size_t kMostWords = 20;                  // lines of a launcher that cannot start
constexpr auto kProbe = std::chrono::seconds(15);  // a host that cannot run `true` in this time is of no use

// "n7.site.org" and "n7" are the same host: schedulers and gethostname() differ in this.
std::string short_name(const std::string& host) {
  return host.substr(0, host.find('.'));
}

std::vector<std::string>::iterator find_host(std::vector<std::string>& hosts, const std::string& host) {
  return std::find_if(hosts.begin(), hosts.end(),
                      [&](const std::string& other) { return short_name(other) == short_name(host); });
}

std::string fix_for(const Fault& fault, const base::Path& run) {
  const std::string on =
      text("the last words of the ranks are in ", (run / "ranks").string(), "; the same command goes on");
  switch (fault.kind) {
    case Fault::Kind::out_of_memory:
      return text("use fewer ranks on a host, a smaller training.global_batch, or training.recompute; ", on);
    case Fault::Kind::hung:
      return text("if steps may take that long, give --patience SECONDS; ", on);
    case Fault::Kind::not_started:
      return "see what the launcher says, and `lockstep doctor`; the same command goes on";
    default:
      return text("look at that host; ", on);
  }
}

// Without mpirun's -q, which keeps to itself why ranks cannot start or find each other.
std::vector<std::string> aloud(std::vector<std::string> line) {
  if (const auto quiet = std::find(line.begin(), line.end(), "-q"); quiet != line.end()) line.erase(quiet);
  return line;
}

// Rules and empty lines left out.
std::vector<std::string> last_words(const std::string& said) {
  std::vector<std::string> words = base::split(said, '\n');
  std::erase_if(words, [](const std::string& word) { return word.find_first_not_of(" -\r") == std::string::npos; });
  words.erase(words.begin(), words.end() - static_cast<std::ptrdiff_t>(std::min(words.size(), kMostWords)));
  return words;
}

class Supervisor {
 public:
  explicit Supervisor(const Supervision& order)
      : order_(order),
        launcher_(find_launcher(scheduler_, order.meet)),
        hosts_(order.ranks, site::allocated_hosts(scheduler_)),
        rule_(order.restarts) {}

  int run() {
    while (true) {
      const WorldEnd end = run_world(plan_world(), inbox_, wish_);
      if (!end.fault) return end.code;
      if (const auto code = after(end)) return *code;
    }
  }

 private:
  WorldPlan plan_world() {
    WorldPlan plan;
    plan.launcher = launcher_;
    plan.name = text(std::random_device{}(), "-", rule_.done());
    plan.run = order_.run;
    plan.ranks = hosts_.ranks();
    plan.patience = order_.patience;
    plan.say = order_.say;
    // `env`: every launcher passes words on, not every one the environment.
    std::vector<std::string> command{"env", text(kWorldVariable, "=", plan.name), text(kSinceVariable, "=", since_),
                                     text(kRestartVariable, "=", rule_.done())};
    command.insert(command.end(), order_.command.begin(), order_.command.end());
    plan.line = launch_line(launcher_, hosts_.shares(), plan.ranks, command);
    if (nothing_done_) plan.line = aloud(plan.line);
    order_.say(text("+ ", site::shell_words(plan.line),
                    launcher_ == Launcher::own ? text("  # ", plan.ranks, " times, without MPI") : ""));
    return plan;
  }

  // Makes everything ready for another start; an exit code when there is none.
  std::optional<int> after(const WorldEnd& end) {
    const Fault& fault = *end.fault;
    run::ensure_there(order_.run);  // without it ranks cannot be heard: their silence says nothing
    order_.say(fault.what);
    nothing_done_ = fault.step == 0;
    if (end.spoke == 0) tell_launchers_words();
    if (!wish_.why.empty()) {
      order_.say(
          text("no restart: ", wish_.why, " asked to stop; the same command goes on from the newest checkpoint"));
      return base::kExitRequeue;
    }
    const Saved saved = newest_save(order_.run);
    has_started_ = has_started_ || end.spoke > 0;
    if (!has_started_ && !order_.fewer_nodes) refuse_fewer(fault);
    const bool never = !has_started_ && rule_.done() == 0 && hosts_.names().size() < 2;
    const std::string refusal = never ? "no rank has ever started" : rule_.refusal(saved.step);
    if (!refusal.empty()) {
      write_end(fault, refusal);
      throw Error(Blame::machine, text(fault.what, "; no restart: ", refusal), fix_for(fault, order_.run));
    }
    leave_out_hosts(fault);
    if (end.first) run::break_lock(order_.run, end.first->who);
    rule_.count(saved.step);
    write_down(fault, saved, end.noticed);
    order_.say(text("restart ", rule_.done(), " of ", order_.restarts, " at most, with ", hosts_.ranks(),
                    hosts_.ranks() == 1 ? " rank" : " ranks", ", ", order_.goes_on, saved.step));
    return std::nullopt;
  }

  // It is asked once more to start ranks, nothing of ours, and this time aloud.
  void tell_launchers_words() const {
    if (launcher_ == Launcher::own) return;
    const auto line = aloud(launch_line(launcher_, hosts_.shares(), hosts_.ranks(), {"true"}));
    const site::Answer answer = site::ask(line, kProbe);
    if (answer.good()) return;
    for (const auto& words : last_words(answer.out + answer.err)) order_.say(text(line[0], ": ", words));
  }

  std::vector<std::string> ask_hosts() const {
    if (hosts_.names().size() < 2) return {};
    return dead_hosts(hosts_.names(), [&](const std::string& host) {
      return site::run_for_output(launch_line(launcher_, {{host, 1}}, 1, {"true"}), kProbe).has_value();
    });
  }

  // All nodes are paid for: going on with some of them is for the user to allow.
  void refuse_fewer(Fault fault) const {
    const std::vector<std::string> dead = ask_hosts();
    if (dead.empty()) return;
    const size_t all = hosts_.names().size();
    fault.host = dead.front();
    write_end(fault, "ranks start on fewer nodes than the job has");
    const bool pbs = scheduler_.name == site::SchedulerName::pbs;
    throw Error(Blame::machine,
                text(fault.what, ": of the ", all, " nodes of this job ranks start on ", all - dead.size(), ", not on ",
                     base::join(dead, ", "), " (mpirun reaches other nodes by ", remote_shell_.name(), ")"),
                text("what mpirun says stands above; ",
                     pbs ? "where ssh is not allowed: --site scheduler.remote_shell="
                           "pbs_tmrsh, and pbs_tmrsh on PATH; "
                         : "",
                     "limits.fewer_nodes goes on with the nodes that start"));
  }

  void leave_out_hosts(const Fault& fault) {
    std::vector<std::string> out = ask_hosts();
    if (fault.kind == Fault::Kind::silent || hosts_.blame(fault.host)) out.push_back(fault.host);
    for (const auto& host : out) {
      if (hosts_.leave_out(host)) order_.say(text("left out: host ", host));
    }
  }

  void write_down(const Fault& fault, const Saved& saved, double noticed) const {
    Json fields = fault.to_json();
    fields["restart"] = rule_.done();
    fields["ranks"] = hosts_.ranks();
    fields["saved_step"] = saved.step;
    fields["noticed"] = noticed;
    fields["seconds_to_notice"] = fault.seconds;
    fields["seconds_lost"] = saved.time > 0 ? noticed - saved.time : 0.0;
    if (!hosts_.left_out().empty()) fields["left_out"] = Json::array_of(hosts_.left_out());
    run::Journal journal(run::RunPaths{order_.run}.journal());
    journal.append("restart", fields);
    journal.sync();
  }

  // For a chain of jobs: its next one may do without the hosts to blame, named as the scheduler does.
  void write_end(const Fault& fault, const std::string& refusal) const {
    Json fields = fault.to_json();
    fields["refusal"] = refusal;
    fields["hosts"] = Json::array_of(hosts_.to_blame(fault.host, site::allocated_hosts(scheduler_)));
    run::Journal journal(run::RunPaths{order_.run}.journal());
    journal.append("gave_up", fields);
    journal.sync();
  }

  const Supervision& order_;
  const std::time_t since_ = std::time(nullptr);
  const site::Scheduler scheduler_ = site::read_scheduler();
  const site::RemoteShell remote_shell_{scheduler_};
  const Launcher launcher_;
  Hosts hosts_;
  RestartRule rule_;
  bool nothing_done_ = false;  // by the ranks before these
  bool has_started_ = false;   // some rank gave a sign of life
  SignalInbox inbox_;
  StopWish wish_;
};

}  // namespace

Saved newest_save(const base::Path& run) {
  const run::RunPaths paths{run};
  Saved saved;
  if (!std::filesystem::exists(paths.journal())) return saved;
  for (const Json& event : run::read_journal(paths.journal()).effective()) {
    const std::string& name = event.at("event").as_string();
    if (name == "save") saved.step = event.int_or("step", 0);
    if (name == "save" || name == "start") saved.time = event.double_or("t", 0);
  }
  // The journal tells of a save one step after it is on the disk: ranks that die in between have come further.
  const auto stamp = run::newest_stamp(paths.checkpoints());
  if (stamp && stamp->step > saved.step) saved = {stamp->step, stamp->time};
  return saved;
}

std::string RestartRule::refusal(int64_t saved_step) const {
  if (done_ >= most_) return text("--restarts allows ", most_);
  if (saved_step == saved_step_ && fruitless_ >= kFruitless) {
    return text(kFruitless, " restarts went on from step ", saved_step, " without a newer checkpoint");
  }
  return "";
}

void RestartRule::count(int64_t saved_step) {
  ++done_;
  fruitless_ = saved_step == saved_step_ ? fruitless_ + 1 : 1;
  saved_step_ = saved_step;
}

Hosts::Hosts(int64_t ranks, std::vector<std::string> hosts) : ranks_(ranks), names_(std::move(hosts)) {
  if (names_.size() < 2) names_.clear();
}

std::vector<site::Share> Hosts::shares() const {
  return names_.empty() ? std::vector<site::Share>{} : site::share_ranks(ranks_, names_);
}

bool Hosts::leave_out(const std::string& host) {
  const auto found = find_host(names_, host);
  if (found == names_.end() || names_.size() < 2) return false;
  for (const auto& share : shares()) {
    if (share.host == *found) ranks_ -= share.ranks;
  }
  left_out_.push_back(*found);
  names_.erase(found);
  ranks_ = std::max<int64_t>(ranks_, 1);
  return true;
}

bool Hosts::blame(const std::string& host) {
  if (host.empty()) return false;
  const bool again = find_host(blamed_, host) != blamed_.end();
  if (!again) blamed_.push_back(host);
  return again;
}

std::vector<std::string> Hosts::to_blame(const std::string& host, std::vector<std::string> allocated) const {
  std::vector<std::string> all = left_out_;
  const bool only_one = host.empty() && allocated.size() == 1;
  const auto found = only_one ? allocated.begin() : find_host(allocated, host);
  if (found != allocated.end() && find_host(all, *found) == all.end()) all.push_back(*found);
  return all;
}

std::vector<std::string> dead_hosts(const std::vector<std::string>& hosts,
                                    const std::function<bool(const std::string&)>& answers) {
  constexpr size_t kAtOnce = 16;
  std::vector<std::atomic<bool>> good(hosts.size());
  for (size_t from = 0; from < hosts.size(); from += kAtOnce) {
    std::vector<std::jthread> asking;
    for (size_t i = from; i < std::min(from + kAtOnce, hosts.size()); ++i) {
      asking.emplace_back([&, i] { good[i] = answers(hosts[i]); });
    }
  }
  std::vector<std::string> dead;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!good[i]) dead.push_back(hosts[i]);
  }
  return dead.size() == hosts.size() ? std::vector<std::string>{} : dead;
}

namespace {

// They are evidence after a failure, and litter after a good end.
void remove_heartbeats(const base::Path& ranks) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(ranks, ignored)) {
    if (entry.path().filename() != "lock") std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace

int supervise(const Supervision& supervision) {
  auto holder = run::read_holder(supervision.run);
  for (int i = 0; i < 10 * supervision.wait_for_folder && holder; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    holder = run::read_holder(supervision.run);
  }
  if (holder) {
    throw Error(
        Blame::user,
        text(supervision.run.string(), ": this run is in use by process ", holder->pid, " on host ", holder->host),
        "wait for it, end it, or choose another --run folder");
  }
  const base::Path ranks = run::supervisors_folder(supervision.run);
  const bool made = !base::is_there(supervision.run);
  std::error_code ignored;
  int code = 0;
  {
    // Rank 0 takes the run's own lock later: two supervisors that start together would end each other's ranks.
    const run::RunFolder held(ranks, [&](std::string_view line) { supervision.say(std::string(line)); });
    code = Supervisor(supervision).run();
    const bool told = code == static_cast<int>(base::Blame::user);  // and nothing failed
    if (code == base::kExitDone || code == base::kExitRequeue || told) remove_heartbeats(ranks);
  }
  std::filesystem::remove(ranks, ignored);  // only when it is empty: another supervisor may have begun
  if (made) std::filesystem::remove(supervision.run, ignored);  // likewise: nothing was trained
  return code;
}

}  // namespace lockstep::ranks
