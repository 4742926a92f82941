// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <utility>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/device.h"
#include "lockstep/verbs/bench/bench_command.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::bench {
namespace {

using base::text;

base::CommandLine step_line() {
  return {"bench step",
          "[JOB]",
          "our step beside PyTorch's Python, in turns, as a ratio",
          {{"--model", "NAME", "without a job: the network (default resnet18)"},
           {"--batch", "N", "without a job: samples a step (default 16)"},
           {"--image-size", "N", "without a job: pixels (default 224)"},
           {"--optimizer", "NAME", "without a job: sgd (default) or adamw"},
           {"--precision", "NAME", "without a job: fp32 (default), tf32, bf16 or amp"},
           {"--threads", "N", "compute threads, ours and the peer's (default: the cores)"},
           {"--steps", "N", "steps of one round (default 4)"},
           {"--rounds", "N", "rounds, ours and the peer's in turns (default 5)"},
           {"--peer", "PYTHON", "a Python with torch, torchvision and timm to compare with"},
           {"--compiled", "", "the peer with torch.compile"},
           {"--device", "NAME", "cpu (default) or cuda"},
           {"--set", "KEY=VALUE", "override a key of the job"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
          "lockstep bench step --model vit_tiny_patch16_224 --peer .deps/oracles/bin/python\n"};
}

// What describes a job on the command line, and the key that a job's own document has for it.
constexpr std::pair<const char*, const char*> kWithoutAJob[] = {{"--model", "model.name"},
                                                                {"--batch", "training.global_batch"},
                                                                {"--image-size", "data.image_size"},
                                                                {"--optimizer", "training.optimizer.name"},
                                                                {"--precision", "training.precision"}};

spec::Job step_job(const base::Arguments& arguments) {
  if (!arguments.positional.empty()) {
    for (const auto& [option, key] : kWithoutAJob) {
      if (!arguments.has(option)) continue;
      throw base::Error(base::Blame::user, text(option, " describes a step without a job, and there is one"),
                        base::shell_words({"--set", text(key, "=", arguments.value_or(option, ""))}));
    }
    return weights::load_job(arguments.only("job"), arguments.values("--set")).job;
  }
  return spec::parse_job(synthetic_job(arguments, 16, 224), arguments.values("--set"));
}

void print_times(const measure::StepBench& bench, const measure::StepTimes& times) {
  const auto batch = static_cast<double>(bench.job.training.global_batch);
  const auto row = [&](const std::string& who, double seconds) {
    return std::vector<std::string>{who, base::fixed(seconds * 1000, 1), base::fixed(batch / seconds, 1)};
  };
  base::Table table({{"step of"}, {"ms", base::Align::right}, {"samples/s", base::Align::right}});
  table.add(row("lockstep", times.median_ours()));
  if (const auto peer = times.median_peer()) {
    table.add(row(text("PyTorch ", times.peer_greeting.substr(times.peer_greeting.find(' ') + 1)), *peer));
  }
  std::printf("%s, batch %lld, %s pixels, %s, %lld threads\n%s", bench.job.model.name.c_str(),
              static_cast<long long>(bench.job.training.global_batch), to_text(bench.job.data.image_size).c_str(),
              name_of(bench.job.training.precision).c_str(), static_cast<long long>(bench.job.training.threads),
              table.to_text().c_str());
  if (const auto ratio = times.ratio()) std::printf("ratio %.3f (above 1: lockstep is faster)\n", *ratio);
}

}  // namespace

LOCKSTEP_BENCH(step)(const std::vector<std::string>& words) {
  const base::CommandLine line = step_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("step", words, arguments);
  measure::StepBench bench;
  bench.job = step_job(arguments);
  if (bench.job.model.classes == 0) bench.job.model.classes = 1000;
  bench.job.training.threads =
      arguments.int_or("--threads", bench.job.training.threads > 0 ? bench.job.training.threads : site::usable_cores());
  bench.steps = arguments.int_or("--steps", bench.steps);
  bench.rounds = arguments.int_or("--rounds", bench.rounds);
  if (bench.steps < 1 || bench.rounds < 1) {
    throw base::Error(base::Blame::user, "--steps and --rounds count from 1", "leave them out for the defaults");
  }
  bench.peer = arguments.value_or("--peer", "");
  bench.compiled = arguments.has("--compiled");
  bench.device = step::open_device(arguments.value_or("--device", "cpu"), 0);
  bench.say = say_progress;
  const measure::StepTimes times = measure::bench_step(bench);
  const base::Json rows = base::Json::array({measure::result_row(bench, times, bench_line("step", words))});
  if (base::give_json(arguments, rows)) return base::kExitDone;
  print_times(bench, times);
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
