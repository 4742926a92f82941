// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/slowness.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/save_clock.h"

namespace lockstep::watching {
namespace {

using base::format_duration;
using base::Json;
using base::percent;
using base::text;

constexpr double kWorthSaying = 0.05;  // of the time

// What the findings are made from: one session, warm.
struct Measured {
  const RunLog& log;
  const Terms& terms;
  TimeSplit split;
  double total = 0;  // seconds
  double steps = 0;
  int64_t behind = 0;  // the last step that does not count

  double share(double seconds) const { return seconds / total; }
  double per_step(double seconds) const { return seconds / steps; }
};

std::string planned_words(const std::optional<double>& planned) {
  if (!planned) return "";
  return *planned > 0 ? text(" (planned: ", format_duration(*planned), ")") : " (planned: nothing)";
}

std::string faster_words(double gain) {
  return text("by the plan's model ", percent(gain, 0), " less time, ", base::fixed(1 / (1 - gain), 2),
              " times as fast");
}

void advise(Finding& finding, std::string setting, double gain) {
  if (gain < 0.01) return;
  finding.setting = std::move(setting);
  finding.gain = gain;
  finding.advice = text(finding.setting, ": ", faster_words(gain));
}

// What the plan expects a step to wait for batches: where its loader is slower than its step, the difference.
std::optional<double> planned_wait(const Terms& terms) {
  if (!terms.option || !terms.job || !terms.option->step_seconds) return std::nullopt;
  const auto& loader = terms.option->loader;
  if (!loader || !loader->samples_per_second || *loader->samples_per_second <= 0) return std::nullopt;
  const double loading = static_cast<double>(terms.job->training.global_batch) / *loader->samples_per_second;
  return std::max(0.0, loading - terms.option->step_seconds->value);
}

// As the plan has it: so many threads give so many times the samples of one, and a step takes what is longer, its
// own work or the loader's.
void advise_threads(const Measured& run, Finding& finding) {
  const Json& seen = run.log.bottleneck;
  const double needed = number_in(seen, "threads_needed"), threads = std::max(1.0, number_in(seen, "threads"));
  const double step = run.per_step(run.split.data + run.split.compute + run.split.communication + run.split.other);
  const double work = needed * (1 - number_in(seen, "waited_share")) * step;  // of the loader's threads, a step
  const double cores = number_in(run.log.start, "cores");
  if (needed < threads) {
    const auto computing = static_cast<int64_t>(number_in(run.log.start, "threads"));
    if (computing > 1) finding.setting = text("training.threads=", computing - 1);
    finding.advice = text("the loader's threads would do, if computing left a core to them",
                          computing > 1 ? text(": ", finding.setting) : "");
    return;
  }
  double wanted = std::max(threads + 1, std::ceil(needed));
  const bool enough = cores <= 0 || wanted <= cores;
  if (!enough) wanted = cores;
  if (wanted > threads) {
    const double after = std::max(step - finding.measured, work / wanted);
    advise(finding, text("data.threads=", wanted), run.share((step - after) * run.steps));
  }
  if (enough) return;
  const std::string beyond = text("to keep up it takes ", base::fixed(needed, 1), " threads and the rank has ", cores,
                                  cores == 1 ? " core" : " cores",
                                  ": images stored no larger than they are used (lockstep prep --max-side) cost less "
                                  "to decode, and another node brings its cores");
  finding.advice += (finding.advice.empty() ? "" : "; ") + beyond;
}

void add_data(const Measured& run, std::vector<Finding>& findings) {
  Finding finding{.part = "data",
                  .share = run.share(run.split.data),
                  .measured = run.per_step(run.split.data),
                  .planned = planned_wait(run.terms),
                  .what = {}};
  if (finding.share < kWorthSaying) return;
  finding.what = text("the steps wait for data ", percent(finding.share, 0), " of the time, ",
                      format_duration(finding.measured), " a step", planned_words(finding.planned));
  const Json& seen = run.log.bottleneck;
  if (!seen.is_object()) {
    findings.push_back(std::move(finding));
    return;
  }
  const std::string stage = seen.string_or("stage", "");
  const auto threads = static_cast<int64_t>(number_in(seen, "threads"));
  finding.what += text("; of the loader's work ", stage, " takes ", percent(number_in(seen, "stage_share"), 0),
                       threads > 0 ? text(", on ", threads, threads == 1 ? " thread" : " threads") : "");
  const Json* from_shards = seen.find("from_shards");
  if (stage != "read") {
    advise_threads(run, finding);
  } else if (from_shards && from_shards->as_bool()) {
    advise(finding, "data.stage=auto", finding.share);  // a copy on the node: reading is no part of a step any more
  } else {
    advise(finding, "lockstep prep SOURCE --to DIR (shards are read in large pieces)", finding.share);
  }
  findings.push_back(std::move(finding));
}

// Seconds of a rank's own work in a step: what the others wait for.
double own_work(const Json& rank, double steps) {
  return number_in(rank, "own") / std::max(1.0, steps);
}

// A rank that is slower than the middle one is waited for by all. Returns the seconds of a step that this costs.
double add_rank(const Measured& run, std::vector<Finding>& findings) {
  const Json& seen = run.log.pace;
  const Json* slowest = seen.is_object() ? seen.find("slowest") : nullptr;
  const Json* median = seen.is_object() ? seen.find("median") : nullptr;
  if (!slowest || !median) return 0;
  const double steps = number_in(seen, "steps");
  const double here = own_work(*slowest, steps), others = own_work(*median, steps);
  const double excess = here - others, step = run.per_step(run.total);
  if (excess < kWorthSaying * step) return 0;
  const bool by_data = number_in(*slowest, "data") - number_in(*median, "data") > 0.5 * excess * steps;
  const std::string host = slowest->string_or("host", "");
  Finding finding{
      .part = "rank", .share = std::min(1.0, excess / step), .measured = here, .planned = std::nullopt, .what = {}};
  if (run.terms.option && run.terms.option->step_seconds) finding.planned = run.terms.option->step_seconds->value;
  finding.what =
      text("rank ", slowest->int_or("rank", 0), " on ", host, " takes ", format_duration(here),
           " a step for its own part, the rank in the middle ", format_duration(others), planned_words(finding.planned),
           "; every rank waits for it", by_data ? ", and it waits for its data" : "");
  advise(finding, text("leave ", host, " out (sbatch --exclude=", host, "), or see what else runs there"),
         finding.share);
  findings.push_back(std::move(finding));
  return excess;
}

void add_communication(const Measured& run, double waiting_for_one, std::vector<Finding>& findings) {
  const double exposed = std::max(0.0, run.per_step(run.split.communication) - waiting_for_one);
  Finding finding{.part = "communication",
                  .share = run.share(exposed * run.steps),
                  .measured = exposed,
                  .planned = std::nullopt,
                  .what = {}};
  if (finding.share < kWorthSaying) return;
  if (run.terms.option && run.terms.option->time) finding.planned = run.terms.option->time->exposed;
  finding.what = text("the ranks exchange gradients, or wait for each other, ", percent(finding.share, 0),
                      " of the time, ", format_duration(finding.measured), " a step", planned_words(finding.planned));
  if (run.terms.job && run.terms.job->training.reduce_precision == spec::ReducePrecision::fp32) {
    advise(finding, "training.reduce_precision=bf16", finding.share / 2);  // half of the bytes
  } else if (run.terms.job) {
    // Twice the samples a step, as often exchanged.
    advise(finding, text("training.global_batch=", 2 * run.terms.job->training.global_batch), finding.share / 2);
  }
  findings.push_back(std::move(finding));
}

// The cost of the run's saves, as its own clock of saves counts it.
run::SaveCost mean_cost(const Measured& run, double saves) {
  run::SaveCost cost;
  for (const auto& save : run.log.saves) {
    if (save.int_or("step", 0) <= run.behind) continue;
    cost.processor += number_in(save, "processor") / saves;
    cost.durable += number_in(save, "seconds") / saves;
  }
  cost.stall = run.split.save / saves;
  return cost;
}

void add_saves(const Measured& run, std::vector<Finding>& findings) {
  Finding finding{
      .part = "save", .share = run.share(run.split.save), .measured = 0, .planned = std::nullopt, .what = {}};
  const auto saves = static_cast<double>(std::count_if(
      run.log.saves.begin(), run.log.saves.end(), [&](const Json& one) { return one.int_or("step", 0) > run.behind; }));
  if (finding.share < kWorthSaying || saves == 0) return;
  finding.measured = run.split.save / saves;
  if (run.terms.option) finding.planned = run.terms.option->save_seconds;
  finding.what =
      text("saving holds the steps up ", percent(finding.share, 0), " of the time, ", format_duration(finding.measured),
           " a save", planned_words(finding.planned), ", ", base::format_count(std::llround(saves)), " saves in ",
           base::format_count(std::llround(run.steps)), " steps");
  const spec::Job* job = run.terms.job;
  if (job && job->checkpoint.every_epochs > 0) {
    const double interval = run::young_interval(mean_cost(run, saves), job->checkpoint.mean_time_between_failures);
    const double after = finding.measured / (finding.measured + interval);  // share of the time
    const double gain = (finding.share - after) / (1 - after);
    advise(finding, "checkpoint.every_epochs=0", gain);
    if (finding.gain > 0) finding.advice += text(" (a save every ", format_duration(interval), ", Young's rule)");
  } else if (job) {  // also a better evaluation is saved
    finding.advice = "most of them keep a better evaluation: fewer of those (evaluation.every_epochs) save less often";
  }
  findings.push_back(std::move(finding));
}

void add_evaluations(const Measured& run, std::vector<Finding>& findings) {
  constexpr double kEnough = 0.05;  // of the time, for evaluations
  const auto count =
      static_cast<double>(std::count_if(run.log.evaluations.begin(), run.log.evaluations.end(), [&](const Json& one) {
        return one.int_or("step", 0) > run.behind && number_in(one, "seconds") > 0;
      }));
  Finding finding{.part = "evaluation",
                  .share = run.share(run.split.evaluation),
                  .measured = 0,
                  .planned = std::nullopt,
                  .what = {}};
  if (finding.share < 2 * kEnough || count == 0) return;
  finding.measured = run.split.evaluation / count;
  const spec::PlanOption* option = run.terms.option;
  if (option && option->evaluation_seconds && option->evaluations && *option->evaluations > 0) {
    finding.planned = *option->evaluation_seconds / static_cast<double>(*option->evaluations);
  }
  finding.what =
      text("evaluations take ", percent(finding.share, 0), " of the time, ", format_duration(finding.measured), " each",
           planned_words(finding.planned), ", ", base::format_count(std::llround(count)), " in ",
           base::format_count(std::llround(run.steps)), " steps");
  if (const spec::Job* job = run.terms.job) {
    const double rest = run.total - run.split.evaluation;
    const double rarer = std::ceil(run.split.evaluation / rest * (1 - kEnough) / kEnough);
    const auto& evaluation = job->evaluation;
    const bool by_steps = evaluation.every_steps > 0;
    const double now = by_steps ? static_cast<double>(evaluation.every_steps) : evaluation.every_epochs;
    const auto steps = static_cast<double>(run.log.total_steps());
    const double whole_run = by_steps ? steps : steps / std::max(1.0, number_in(run.log.start, "steps_per_epoch"));
    const double wanted = steps > 0 ? std::max(now, std::min(rarer * now, whole_run)) : rarer * now;
    advise(finding, text(by_steps ? "evaluation.every_steps=" : "evaluation.every_epochs=", wanted),
           finding.share * (1 - now / wanted));
  }
  findings.push_back(std::move(finding));
}

// The fastest other option of the plan on the same devices, for the whole run.
const spec::PlanOption* faster_option(const Terms& terms) {
  if (!terms.plan || !terms.option || !terms.option->total_seconds) return nullptr;
  const spec::PlanOption* best = nullptr;
  for (const auto& option : terms.plan->options) {
    const bool same = option.machine == terms.option->machine && option.gpu == terms.option->gpu &&
                      option.cpu == terms.option->cpu && option.gpus == terms.option->gpus &&
                      option.nodes == terms.option->nodes;
    if (!same || !option.feasible || !option.drivable || !option.total_seconds || option.set.empty()) continue;
    if (!best || *option.total_seconds < *best->total_seconds) best = &option;
  }
  return best && *best->total_seconds < 0.98 * *terms.option->total_seconds ? best : nullptr;
}

void add_computing(const Measured& run, std::vector<Finding>& findings) {
  Finding finding{.part = "compute",
                  .share = run.share(run.split.compute),
                  .measured = run.per_step(run.split.compute),
                  .planned = std::nullopt,
                  .what = {}};
  const spec::PlanOption* option = run.terms.option;
  if (option && option->step_seconds) finding.planned = option->step_seconds->value;
  const bool slower = option && option->step_seconds && finding.measured > option->step_seconds->high;
  finding.what =
      text("computing takes ", percent(finding.share, 0), " of the time, ", format_duration(finding.measured),
           " a step", planned_words(finding.planned), slower ? ", more than planned" : "",
           run.log.features_seconds > 0 ? " (without the cached features)" : "");
  const Json* why = run.log.promise.is_object() ? run.log.promise.find("why") : nullptr;
  if (slower && why && why->is_array() && why->size() > 0 && why->items()[0].is_string()) {
    finding.what += text(": ", why->items()[0].as_string());
  }
  if (const spec::PlanOption* faster = faster_option(run.terms)) {
    const double gain = 1 - *faster->total_seconds / *option->total_seconds;
    advise(finding, base::join(faster->set, " "), finding.share * gain);
  } else if (!option) {
    finding.advice = "what other settings would bring: lockstep plan RUN/job.json --on here, then train --plan";
  }
  findings.push_back(std::move(finding));
}

void add_rest(const Measured& run, std::vector<Finding>& findings) {
  Finding finding{.part = "other",
                  .share = run.share(run.split.other),
                  .measured = run.per_step(run.split.other),
                  .planned = std::nullopt,
                  .what = {}};
  if (finding.share < kWorthSaying) return;
  finding.what = text("between the parts of a step ", percent(finding.share, 0), " of the time pass, ",
                      format_duration(finding.measured),
                      " a step: batches on their way to the device, checks, records; or other programs have the cores");
  findings.push_back(std::move(finding));
}

}  // namespace

Slowness explain_slowness(const RunLog& log, const Terms& terms) {
  const size_t from = log.first_warm();
  Measured run{.log = log, .terms = terms, .split = log.split(from)};
  run.split.features = 0;  // computed once, before the steps that this is about
  for (size_t i = from; i < log.steps.size(); ++i) run.steps += static_cast<double>(log.steps[i].steps);
  run.behind = from > 0 && !log.steps.empty() ? log.steps[from - 1].step : 0;
  run.total = run.split.total();
  Slowness slowness;
  if (run.steps == 0 || run.total <= 0) return slowness;
  slowness.split = run.split;
  slowness.step_seconds = run.per_step(run.total - run.split.evaluation);
  auto& findings = slowness.findings;
  add_data(run, findings);
  const double waiting_for_one = add_rank(run, findings);
  add_communication(run, waiting_for_one, findings);
  add_saves(run, findings);
  add_evaluations(run, findings);
  add_rest(run, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::max(a.gain, a.share / 2) > std::max(b.gain, b.share / 2);  // first what can be changed
  });
  add_computing(run, findings);  // what a run is for: last, unless it is all there is
  return slowness;
}

Json to_json(const Slowness& slowness) {
  Json all = Json::object();
  all["step_seconds"] = slowness.step_seconds;
  Json findings = Json::array();
  for (const auto& finding : slowness.findings) {
    Json one = Json::object();
    one["part"] = finding.part;
    one["share"] = finding.share;
    one["measured"] = finding.measured;
    if (finding.planned) one["planned"] = *finding.planned;
    one["what"] = finding.what;
    if (!finding.setting.empty()) one["setting"] = finding.setting;
    if (finding.gain > 0) one["gain"] = finding.gain;
    if (!finding.advice.empty()) one["advice"] = finding.advice;
    findings.push_back(std::move(one));
  }
  all["findings"] = std::move(findings);
  return all;
}

std::string to_text(const Slowness& slowness) {
  std::string all;
  for (const auto& finding : slowness.findings) {
    all += text(finding.what, "\n");
    if (!finding.advice.empty()) all += text("  ", finding.advice, "\n");
  }
  return all;
}

}  // namespace lockstep::watching
