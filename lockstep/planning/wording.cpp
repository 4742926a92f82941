// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/wording.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::planning {
namespace {

using base::text;
using forecast::Option;

std::string with_changes(const Option& option) {
  const std::string changed = changes_text(option);
  return changed.empty() ? label_of(option) : text(label_of(option), " with ", changed);
}

std::string best_sentence(const Plan& plan) {
  const auto option = [&](int64_t i) -> const Option& { return plan.options[static_cast<size_t>(i)]; };
  std::string words = text("fastest: ", with_changes(option(plan.best.fastest)), " (",
                           run_text(option(plan.best.fastest)), option(plan.best.fastest).length ? ")" : " a step)");
  if (plan.best.cheapest >= 0 && plan.options.size() > 1) {
    words += text("; cheapest: ", with_changes(option(plan.best.cheapest)), " (",
                  money_text(option(plan.best.cheapest)), ")");
  }
  if (plan.best.smallest >= 0 && plan.options.size() > 1) {
    words += text("; smallest: ", with_changes(option(plan.best.smallest)));
  }
  return words;
}

// What drives it all the same. PyTorch 2.11 for CUDA 12.6 has code for Pascal and Volta, for 12.8 and 13 it has none.
std::string older_cuda(const catalogue::Gpu& gpu) {
  const int capability = static_cast<int>(std::lround(10 * std::atof(gpu.compute_capability.value_or("0").c_str())));
  return capability >= 60 ? "; libtorch 2.11 for CUDA 12.6 does, given by its prefix (not tried here)" : "";
}

std::string nowhere_sentence(const Plan& plan) {
  const Option* least = nullptr;
  for (const auto& option : plan.options) {
    if (!option.trial.fits && (!least || option.trial.memory.total < least->trial.memory.total)) least = &option;
  }
  const auto unknown = std::find_if(plan.options.begin(), plan.options.end(),
                                    [](const Option& option) { return option.trial.fits && !option.trial.time; });
  if (unknown != plan.options.end()) return text("fits ", label_of(*unknown), ", whose speed is not known");
  const auto refused = std::find_if(plan.options.begin(), plan.options.end(),
                                    [](const Option& option) { return option.trial.refusal.has_value(); });
  if (!least && refused != plan.options.end()) return "it fits, but train refuses it: see below";
  if (!least && !plan.options.empty() && !plan.options.front().host_fits()) {
    return "it fits the GPUs, but not the main memory of a node: see below";
  }
  if (!least) return "it fits, but no job would ever end: see below";
  int64_t largest = 0;
  for (const auto& option : plan.options) largest = std::max(largest, option.trial.capacity);
  const std::string there = text(", the largest has ", base::format_bytes(static_cast<double>(largest)));
  if (plan.least) {
    const std::string how = changes_text(plan.least->with);
    return text("fits nowhere of these: it needs ", bytes_text(plan.least->bytes), " at least",
                how.empty() ? "" : text(" (", how, ")"), there);
  }
  return text("fits nowhere of these: it needs ", bytes_text(least->trial.memory.total), " as written", there);
}

}  // namespace

std::string figure(double value) {
  return base::fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 || value == 0 ? 2 : 4);
}

std::string time_text(double seconds) {
  if (seconds < 60) return text(figure(seconds), " s");
  if (seconds < kSecondsPerHour) return text(figure(seconds / 60), " min");
  if (seconds < 100 * kSecondsPerHour) return text(figure(seconds / kSecondsPerHour), " h");
  return text(figure(seconds / kSecondsPerHour / 24), " d");
}

std::string bytes_text(int64_t bytes) {
  return base::format_bytes(static_cast<double>(bytes));
}

std::string label_of(const Option& option) {
  const forecast::MachineOption& machine_option = option.machine_option;
  if (!machine_option.gpu)
    return machine_option.cpu && machine_option.cpu->id != machine_option.name
               ? text(machine_option.name, ", ", machine_option.cpu->id)
               : machine_option.name;
  if (!machine_option.named)
    return machine_option.gpus == 1 ? machine_option.name : text(machine_option.gpus, " x ", machine_option.name);
  return text(machine_option.name, ", ", machine_option.gpus, " x ", machine_option.gpu->id);
}

std::string changes_text(const Option& option) {
  std::vector<std::string> words;
  for (const auto& change : option.changes) {
    if (change.starts_with("training.precision=")) words.push_back(option.levers.precision);
    if (change.starts_with("training.micro_batch=")) {
      words.push_back(option.levers.micro_batch > 0 ? text("micro-batch ", option.levers.micro_batch) : "one pass");
    }
    if (change.starts_with("training.recompute=")) {
      const bool all = option.levers.recompute == std::vector<std::string>{"all"};
      const size_t count = option.levers.recompute.size();
      words.push_back(all ? "recompute all" : count > 0 ? text("recompute ", count, " blocks") : "recompute none");
    }
    if (change.starts_with("training.zero=")) {
      words.push_back(option.levers.zero == 0   ? "nothing cut over the ranks"
                      : option.levers.zero == 3 ? "ZeRO-3 (recomputes)"
                                                : text("ZeRO-", option.levers.zero));
    }
    if (change.starts_with("data.memory=")) {
      words.push_back(text("loaders of ", bytes_text(option.levers.data_memory)));
    }
  }
  return base::join(words, ", ");
}

std::string run_text(const Option& option) {
  if (!option.trial.time) return "-";
  if (!option.length) return time_text(option.trial.time->step.value);
  return option.length->jobs > 0 ? time_text(option.length->total) : "never";
}

std::string money_text(const Option& option) {
  if (!option.length || option.length->jobs == 0) return "-";
  if (const forecast::Bill* rent = option.costs.cheapest_rent()) return text(figure(rent->amount), " ", rent->unit);
  for (const char* kind : {"grant", "electricity"}) {
    for (const auto& bill : option.costs.bills) {
      if (bill.kind == kind) return text(figure(bill.amount), " ", bill.unit);
    }
  }
  return option.energy ? text(figure(option.costs.kwh), " kWh") : "-";
}

std::string spread_text(const Option& option) {
  if (!option.trial.time) return "";
  const forecast::Interval& step = option.trial.time->step;
  const double half = std::max(step.high - step.value, step.value - step.low) / step.value;
  return text("+-", std::lround(100 * half), " %");
}

std::string headline(const Plan& plan) {
  return plan.best.fastest >= 0 ? best_sentence(plan) : nowhere_sentence(plan);
}

std::vector<std::string> undriven(const Plan& plan) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& option : plan.options) {
    if (option.drivable) continue;
    const catalogue::Gpu& gpu = *option.machine_option.gpu;
    const std::string reason =
        gpu.vendor != "NVIDIA"
            ? text("CUDA does not drive GPUs of ", gpu.vendor, "; planned only")
            : text("no current CUDA drives it (last: ", gpu.last_cuda.value_or("none"), ")", older_cuda(gpu));
    auto& names = by_reason[reason];
    if (std::find(names.begin(), names.end(), gpu.id) == names.end()) names.push_back(gpu.id);
  }
  std::vector<std::string> lines;
  lines.reserve(by_reason.size());
  for (const auto& [reason, names] : by_reason) lines.push_back(text(base::join(names, ", "), ": ", reason));
  return lines;
}

std::string description(const Plan& plan) {
  const forecast::RunAmount& work = plan.workload.work;
  std::string words = text(plan.title, ", ", base::format_short_count(static_cast<double>(plan.parameters)),
                           " parameters, ", plan.workload.levers.precision, ", batch ", work.global_batch);
  if (plan.workload.levers.micro_batch > 0) words += text(" in passes of ", plan.workload.levers.micro_batch);
  const run::Span& span = work.span;
  if (span.steps > 0) return words + text("; ", base::format_count(span.steps), " steps");
  const double epochs = std::accumulate(span.phases.begin(), span.phases.end(), span.epochs);
  if (epochs > 0) words += text("; ", epochs, " epochs");
  if (work.samples > 0) words += text(" of ", base::format_count(work.samples), " samples");
  return words;
}

}  // namespace lockstep::planning
