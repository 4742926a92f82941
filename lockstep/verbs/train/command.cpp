// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/command.h"
#include "lockstep/site/manners.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/step/device.h"
#include "lockstep/step/memory.h"
#include "lockstep/verbs/train/launch.h"
#include "lockstep/verbs/train/train.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs {
namespace {

using base::text;

base::CommandLine command_line() {
  return {
      "train",
      "JOB",
      "job -> run folder: weights, checkpoints, journal, TensorBoard events",
      {{"--run", "DIR", "the run folder (default runs/<name of the job>); goes on from a checkpoint in it"},
       {"--ranks", "N", "start N ranks on this machine with mpirun"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--plan", "FILE", "hold the run to this plan of the job: promise against fact after warm-up and at the end"},
       {"--set", "KEY=VALUE", "override a key of the job: --set training.epochs=3"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the result as JSON (- = standard output)"}},
      "Ctrl-C or SIGTERM: stops after the step, saves and exits with 85; the same command goes on.\n"
      "mpirun -n N lockstep train JOB and srun work as well.\n"};
}

// The tightest of the job's own limit and the scheduler's.
std::optional<double> seconds_left(const spec::Job& job) {
  std::optional<double> left;
  if (job.limits.walltime > 0) left = job.limits.walltime;
  if (const auto by_scheduler = site::seconds_left()) {
    const auto seconds = static_cast<double>(by_scheduler->count());
    left = left ? std::min(*left, seconds) : seconds;
  }
  return left;
}

// Set for the ranks that --ranks starts, whose own words no longer have it.
constexpr const char* kRanksVariable = "LOCKSTEP_RANKS";

std::string same_again(const std::vector<std::string>& words) {
  const char* ranks = std::getenv(kRanksVariable);
  return text("lockstep train ", site::shell_words(words), ranks ? text(" --ranks ", ranks) : "");
}

void print_end(const TrainResult& result, const base::Path& run, const std::vector<std::string>& words) {
  if (!result.finished) {
    std::printf("stopped (%s) after step %lld of %lld, everything is saved in %s\ngo on with: %s\n",
                result.stop_reason.c_str(), static_cast<long long>(result.step),
                static_cast<long long>(result.total_steps), run.c_str(), same_again(words).c_str());
    return;
  }
  std::string scores;
  if (result.top1)
    scores = text("; validation top-1 ", base::percent(*result.top1, 2), ", loss ", base::fixed(*result.loss, 4));
  if (result.bad_samples > 0) scores += text("; ", result.bad_samples, " unreadable samples were skipped");
  std::printf("trained %lld steps in %s%s\nweights: %s\nsha256:  %s\n", static_cast<long long>(result.step),
              base::duration_text(result.seconds).c_str(), scores.c_str(), (run / "weights.safetensors").c_str(),
              result.weights_sha256.c_str());
}

void write_result(const base::Arguments& arguments, const TrainResult& result) {
  const auto file = arguments.value("--json");
  if (!file) return;
  if (*file == "-") {
    std::printf("%s\n", result.to_json().dump().c_str());
  } else {
    base::write_json(*file, result.to_json());
  }
}

int train_here(const spec::Job& job, const base::Arguments& arguments, const std::vector<std::string>& words) {
  const run::StopSignals signals;
  TrainOptions options;
  options.run = arguments.value_or("--run", text("runs/", job.name));
  if (const auto plan = arguments.value("--plan")) options.plan = *plan;
  options.device = step::open_device(arguments.value_or("--device", "cpu"), comm::locality().rank);
  step::keep_freed_memory();
  const auto group = comm::join_group();
  if (options.device.is_cuda() && group->size() > 1) {
    throw base::Error(base::Blame::user, "--device cuda with more than one rank", "use one rank for now");
  }
  base::Progress progress(base::progress_for_stderr());
  if (group->rank() == 0) {
    options.voice.show = [&](std::string_view line) { progress.show(line); };
    options.voice.say = [&](std::string_view line) { progress.print(line); };
    options.seconds_left = seconds_left(job);
  }
  options.stop = [&] { return signals.name(); };
  try {
    const TrainResult result = train(job, options, *group);
    progress.end();  // its last line stands before ours
    if (group->rank() == 0) {
      if (arguments.value("--json") != "-") print_end(result, options.run, words);
      write_result(arguments, result);
    }
    group->barrier();
    return result.finished ? base::kExitDone : base::kExitRequeue;
  } catch (const base::Error& error) {
    // What fails alike on all ranks is told once: rank 0 ends the others while they wait (a launcher
    // sends SIGTERM, which we hear as a wish to stop, and SIGKILL a second later). Leaving the group
    // in good order would wait for ranks that may never come.
    if (group->size() > 1) {
      if (group->rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(4));
      std::fprintf(stderr, "%s\n", error.message().c_str());
      group->abort(error.exit_code());
    }
    throw;
  }
}

}  // namespace

LOCKSTEP_VERB(train)(const std::vector<std::string>& words) {
  const base::CommandLine line = command_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  const spec::Job job = spec::load_job(arguments.only("job file"), arguments.values("--set"));
  const int64_t ranks = arguments.int_or("--ranks", 1);
  if (ranks < 1) throw base::Error(base::Blame::user, text("--ranks ", ranks), "give 1 or more");
  const double walltime = job.limits.walltime > 0 ? job.limits.walltime : 24 * 3600.0;
  site::refuse_on_login_node("train", words, arguments.has("--here"),
                             std::chrono::seconds(static_cast<int64_t>(walltime)));
  if (ranks > 1 && !comm::launched_by_mpi()) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
    const auto command = mpirun_line(program, "train", words, ranks, geteuid() == 0);
    std::fprintf(stderr, "+ %s\n", site::shell_words(command).c_str());
    setenv(kRanksVariable, text(ranks).c_str(), 1);
    return run_ranks(command);
  }
  return train_here(job, arguments, words);
}

}  // namespace lockstep::verbs
