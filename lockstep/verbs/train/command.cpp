// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/nccl_group.h"
#include "lockstep/loader/patient_loader.h"
#include "lockstep/ranks/launch.h"
#include "lockstep/ranks/rank_error.h"
#include "lockstep/ranks/rank_life.h"
#include "lockstep/ranks/supervisor.h"
#include "lockstep/ranks/worker_slot.h"
#include "lockstep/remote/away.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/command.h"
#include "lockstep/site/hosts.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/load.h"
#include "lockstep/site/manners.h"
#include "lockstep/site/nvml.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/step/device.h"
#include "lockstep/step/memory.h"
#include "lockstep/training/find_rate.h"
#include "lockstep/training/train.h"
#include "lockstep/verbs/train/check_command.h"
#include "lockstep/verbs/train/out_of_memory.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::train {
namespace {

using base::text;

base::CommandLine command_line() {
  return {
      "train",
      "JOB",
      "job -> run folder: weights, checkpoints, journal, TensorBoard events",
      {{"--run", "DIR", "the run folder (default runs/<name of the job>); goes on from a checkpoint in it"},
       {"--ranks", "N",
        "start N ranks with mpirun (GPUs: also without), on all nodes of an allocation, and watch over them"},
       {"--restarts", "K", "start dead or hung ranks again from the last checkpoint, K times at most (default 10)"},
       {"--patience", "SECONDS", "without progress until ranks count as hung (default 50; longer steps are learnt)"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--plan", "FILE", "hold the run to this plan of the job: promise against fact after warm-up and at the end"},
       {"--profile", "",
        "write RUN/profile.json: five steps as a trace for ui.perfetto.dev, with every kernel of a GPU"},
       {"--history", "",
        "every rank writes RUN/history/rank-N.jsonl: the samples of each step, a checksum of the weights"},
       {"--check-data", "", "train nothing: decode every sample once on all cores and list those that cannot be used"},
       {"--find-lr", "", "only try learning rates, up to 100 steps, and suggest one; touches no run folder"},
       {"--set", "KEY=VALUE", "override a key of the job: --set training.epochs=3"},
       {"--accept-changes", "", "go on with a run although its job now says otherwise (another learning rate, ...)"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the result as JSON (- = standard output)"}},
      "Ctrl-C, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU, SIGPIPE: stops after the step, saves, exits with 85; the same "
      "command\n"
      "goes on.\n"
      "mpirun -n N lockstep train JOB and srun work as well.\n"
      "examples: lockstep train job.json --set training.epochs=3\n"
      "          lockstep train examples/shapes.json --run quickstart/run --ranks 2"};
}

// Since a supervisor began, 0 without one: its starts of the ranks share one limit.
double seconds_passed() {
  const char* since = std::getenv(ranks::kSinceVariable);
  return since ? static_cast<double>(std::time(nullptr)) - std::atof(since) : 0;
}

// The tightest of the job's own limit and the scheduler's.
std::optional<double> seconds_left(const spec::Job& job, double passed) {
  std::optional<double> left;
  if (job.limits.walltime > 0) left = job.limits.walltime - passed;
  if (const auto by_scheduler = site::seconds_left()) {
    const auto seconds = static_cast<double>(by_scheduler->count());
    left = left ? std::min(*left, seconds) : seconds;
  }
  return left;
}

std::string saving_text(const training::TrainResult& result) {
  return text("saved ", result.saves, " times, the last in ", base::duration_text(result.save_seconds),
              "; the steps waited ", base::fixed(result.stall_seconds, 2), " s for it (",
              base::percent(result.stall_share, 2), " of the time)\n");
}

void print_end(const training::TrainResult& result, const base::Path& run, const std::vector<std::string>& words) {
  if (result.saves > 0) std::fputs(saving_text(result).c_str(), stdout);
  if (!result.finished && result.total_steps == 0) {
    std::printf("stopped (%s) before the first step, the run is as it was\ngo on with: lockstep train %s\n",
                result.stop_reason.c_str(), site::shell_words(words).c_str());
    return;
  }
  if (!result.finished) {
    std::printf("stopped (%s) after step %lld of %lld, everything is saved in %s\ngo on with: lockstep train %s\n",
                result.stop_reason.c_str(), static_cast<long long>(result.step),
                static_cast<long long>(result.total_steps), run.c_str(), site::shell_words(words).c_str());
    return;
  }
  std::string scores;
  if (result.evaluation) scores = text("; validation ", result.evaluation->text());
  if (result.bad_samples > 0) scores += text("; ", result.bad_samples, " unreadable samples were skipped");
  const char* which = result.evaluation ? " (the last; eval and predict take the best by validation)" : "";
  std::printf("trained %lld steps in %s%s\nweights: %s%s\nsha256:  %s\n", static_cast<long long>(result.step),
              base::duration_text(result.seconds).c_str(), scores.c_str(), (run / "weights.safetensors").c_str(), which,
              result.weights_sha256.c_str());
}

base::Path run_folder(const spec::Job& job, const base::Arguments& arguments) {
  return arguments.value_or("--run", text("runs/", job.name));
}

void check_ranks(const spec::Job& job, int64_t ranks) {
  if (ranks <= job.training.global_batch) return;
  throw base::Error(
      base::Blame::user,
      text(ranks, " ranks for a training.global_batch of ", job.training.global_batch, ": some would have no sample"),
      text("--ranks ", job.training.global_batch, " or fewer, or --set training.global_batch=", ranks, " or more"));
}

int train_as_rank(const weights::LoadedJob& loaded, const base::Arguments& arguments,
                  const std::vector<std::string>& words, training::TrainOptions& options, const ranks::Rank& rank) {
  const spec::Job& job = loaded.job;
  comm::Group& group = rank.group;
  base::Progress progress(base::progress_for_stderr());
  if (group.rank() == 0) {
    options.logger.show = [&](std::string_view line) { progress.show(line); };
    options.logger.say = [&](std::string_view line) { progress.print(line); };
    for (const auto& note : loaded.notes) progress.print(note);
    options.seconds_passed = seconds_passed();
    options.seconds_left = seconds_left(job, options.seconds_passed);
  }
  if (const char* restart = std::getenv(ranks::kRestartVariable)) options.restarted = std::atoi(restart) > 0;
  options.activity = rank.activity;
  const int64_t asked = arguments.int_or("--ranks", group.size());
  if (!rank.watched && asked != group.size()) {
    throw base::Error(base::Blame::user, text("--ranks ", asked, ", but the launcher has started ", group.size()),
                      "leave --ranks to the launcher, or start lockstep without one");
  }
  check_ranks(job, group.size());
  const training::TrainResult result = [&] {
    try {
      return training::train(job, options, group);
    } catch (const c10::OutOfMemoryError& error) {
      const base::Error told = ranks::rank_error(error);
      progress.end();
      const std::string fitting =
          ask_what_would_fit(arguments.only("job file"), arguments.values("--set"), group.size());
      throw fitting.empty() ? told : base::Error(told.blame(), told.what(), fitting);
    }
  }();
  progress.end();  // its last line stands before ours
  if (group.rank() == 0) {
    if (!base::give_json(arguments, result.to_json())) print_end(result, options.run, words);
  }
  group.barrier();
  return result.finished ? base::kExitDone : base::kExitRequeue;
}

int train_here(const weights::LoadedJob& loaded, const base::Arguments& arguments,
               const std::vector<std::string>& words) {
  const spec::Job& job = loaded.job;
  // Of several ranks the first speaks, unless their supervisor does.
  const bool speaks = !ranks::my_worker_slot(run_folder(job, arguments)) && site::read_launch().rank == 0;
  const run::StopSignals signals(speaks ? run::Acknowledge::on_stderr : run::Acknowledge::silently);
  training::TrainOptions options;
  options.run = run_folder(job, arguments);
  if (const auto plan = arguments.value("--plan")) options.plan = *plan;
  options.history = arguments.has("--history");
  options.profile = arguments.has("--profile");
  // Before anything of this process computes.
  if (arguments.value_or("--device", "cpu") == "cpu") options.threads = run::choose_threads(job.training);
  options.accept_changes = arguments.has("--accept-changes");
  options.stop = [&] { return ranks::stop_reason(signals.name(), options.run); };
  const auto join = [&] {
    const std::string device = arguments.value_or("--device", "cpu");
    if (device == "cuda" && !std::getenv("CUDA_VISIBLE_DEVICES")) {  // before this process itself takes memory there
      const std::string company = step::gpu_company(site::read_gpus(), static_cast<size_t>(comm::locality().rank));
      if (!company.empty()) std::fprintf(stderr, "lockstep: note: %s\n", company.c_str());
    }
    options.device = step::open_device(device, comm::locality().rank);
    step::keep_freed_memory();
    return options.device.is_cuda() ? comm::join_cuda_group(options.device, options.run) : comm::join_group();
  };
  const int code = ranks::work_as_rank(options.run, join, [&](const ranks::Rank& rank) {
    return train_as_rank(loaded, arguments, words, options, rank);
  });
  if (loader::left_threads_behind()) {  // all is saved, and a thread still hangs in a read
    std::fflush(nullptr);
    ::_exit(code);
  }
  return code;
}

int find_rate_here(const weights::LoadedJob& loaded, const base::Arguments& arguments, int64_t ranks) {
  if (ranks > 1) {
    throw base::Error(base::Blame::user, text("--find-lr with --ranks ", ranks),
                      "leave --ranks out: the rates hold for the global batch, whatever the ranks");
  }
  const run::StopSignals signals(run::Acknowledge::on_stderr);
  training::RateOptions options;
  options.device = step::open_device(arguments.value_or("--device", "cpu"), 0);
  options.stop = [&] { return signals.name(); };
  base::Progress progress(base::progress_for_stderr());
  options.logger.show = [&](std::string_view line) { progress.show(line); };
  for (const auto& note : loaded.notes) progress.print(note);
  const auto alone = comm::single_group();
  const training::RateSweep sweep = training::find_rate(loaded.job, options, *alone);
  progress.end();
  base::give(arguments, sweep.to_json(), sweep.to_text());
  return base::kExitDone;
}

int supervise_here(const spec::Job& job, const base::Arguments& arguments, const std::vector<std::string>& words,
                   int64_t ranks) {
  const bool on_gpus = arguments.value_or("--device", "cpu") == "cuda";
  const auto hosts = static_cast<int64_t>(site::allocated_hosts(site::read_scheduler()).size());
  // Of other nodes nothing is known.
  if (!on_gpus && hosts <= 1 && job.training.threads == 0) site::pass_busy_cores_on();
  if (on_gpus) {
    ranks::check_gpus(ranks, hosts, static_cast<int64_t>(site::read_gpus().devices.size()));
  }
  ranks::Supervision order;
  order.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "train"};
  order.command.insert(order.command.end(), words.begin(), words.end());
  order.run = run_folder(job, arguments);
  order.ranks = ranks;
  if (on_gpus) order.meet = ranks::Meet::on_gpus;
  order.fewer_nodes = job.limits.fewer_nodes;
  order.restarts = arguments.int_or("--restarts", order.restarts);
  if (order.restarts < 0) throw base::Error(base::Blame::user, text("--restarts ", order.restarts), "give 0 or more");
  const auto patience = arguments.int_or("--patience", static_cast<int64_t>(order.patience.hang));
  if (patience < 5) {
    throw base::Error(base::Blame::user, text("--patience ", patience),
                      "give 5 or more: ranks tell of themselves once a second");
  }
  order.patience.hang = static_cast<double>(patience);
  order.say = [](const std::string& line) {
    std::fprintf(stderr, "%s%s\n", line[0] == '+' ? "" : "supervisor: ", line.c_str());
  };
  return ranks::supervise(order);
}

}  // namespace

LOCKSTEP_VERB(train)(const std::vector<std::string>& words) {
  const base::CommandLine line = command_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  const weights::LoadedJob loaded = weights::load_job(arguments.only("job file"), arguments.values("--set"));
  const spec::Job& job = loaded.job;
  const int64_t ranks = ranks::ranks_asked(arguments);
  check_ranks(job, ranks);
  const double walltime = job.limits.walltime > 0 ? job.limits.walltime : 24 * 3600.0;
  site::refuse_on_login_node("train", words, arguments.has("--here"),
                             std::chrono::seconds(static_cast<int64_t>(walltime)));
  if (arguments.has("--check-data"))
    return check_data(job, arguments, run_folder(job, arguments).string() + ".bad.txt");
  if (arguments.has("--find-lr")) return find_rate_here(loaded, arguments, ranks);
  remote::refuse_if_away(run_folder(job, arguments));
  return ranks::run_on_ranks({.ranks = ranks,
                              .run = run_folder(job, arguments),
                              .watch = [&] { return supervise_here(job, arguments, words, ranks); },
                              .work = [&] { return train_here(loaded, arguments, words); }});
}

}  // namespace lockstep::verbs::train
