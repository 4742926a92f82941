// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/facts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::training {
namespace {

using base::text;
using Unit = Comparison::Unit;

constexpr double kOneSaveTolerance = 1;  // a file system is as fast as its other users let it be: half to twice

double mean_of(double sum, int64_t count) {
  return sum / static_cast<double>(std::max<int64_t>(1, count));
}

std::string show(double value, Unit unit) {
  if (unit == Unit::bytes) return base::format_bytes(value);
  if (unit == Unit::per_second) return text(base::fixed(value, value < 10 ? 2 : 1), " /s");
  return base::format_duration(value);
}

std::string signed_percent(double share) {
  return (share < 0 ? "" : "+") + base::percent(share);
}

// Both gradients of a convolution are one operator on a processor.
std::string shared_name(const std::string& operator_class) {
  return operator_class.starts_with("convolution_") ? "convolution gradients" : operator_class;
}

std::map<std::string, double> shared_names(const std::map<std::string, double>& by_class) {
  std::map<std::string, double> all;
  for (const auto& [name, seconds] : by_class) all[shared_name(name)] += seconds;
  return all;
}

struct ClassDifference {
  std::string name;
  double promised = 0, measured = 0;
  double difference() const { return measured - promised; }
};

std::vector<ClassDifference> by_difference(const std::map<std::string, double>& promised,
                                           const std::map<std::string, double>& measured) {
  std::map<std::string, ClassDifference> rows;
  for (const auto& [name, seconds] : shared_names(promised)) rows[name].promised = seconds;
  for (const auto& [name, seconds] : shared_names(measured)) rows[name].measured = seconds;
  std::vector<ClassDifference> all;
  all.reserve(rows.size());
  for (auto& [name, row] : rows) all.push_back({name, row.promised, row.measured});
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return std::abs(a.difference()) > std::abs(b.difference()); });
  return all;
}

}  // namespace

Facts::Facts(Promise promise, int64_t global_batch)
    : promise_(std::move(promise)), global_batch_(global_batch), phases_(std::max<size_t>(1, promise_.phases.size())) {}

void Facts::phase(size_t index) {
  phase_ = std::min(index, phases_.size() - 1);
}

std::optional<double> Facts::promised_step() const {
  return promise_.phases.empty() ? promise_.step_seconds : promise_.phases[phase_].step_seconds;
}

std::optional<double> Facts::promised_memory() const {
  if (promise_.phases.empty()) return promise_.memory_bytes;
  double most = 0;
  for (size_t i = 0; i <= phase_; ++i) most = std::max(most, promise_.phases[i].memory_bytes);
  return most;
}

void Facts::features(double seconds) {
  phases_[phase_].features += seconds;
}

void Facts::step(const StepFact& fact) {
  PhaseFacts& facts = phases_[phase_];
  const bool counts = facts.steps >= kWarmUp && !profiling();
  ++steps_;
  ++facts.steps;
  if (!counts) return;
  facts.samples += fact.samples;
  facts.seconds += fact.seconds;
  facts.data += fact.data;
  if (fact.samples != global_batch_) return;
  ++facts.full_steps;
  facts.full_seconds += fact.seconds - fact.data;
  facts.full_communication += fact.communication;
}

void Facts::saved(double seconds) {
  ++saves_;
  save_seconds_ += seconds;
}

void Facts::epoch(double seconds) {
  ++epochs_;
  epoch_seconds_ += seconds;
}

double Facts::PhaseFacts::step_mean() const {
  return mean_of(full_seconds, full_steps);
}

// Steps, rates and features, of each phase where there are some.
void Facts::add_steps(std::vector<Comparison>& rows) const {
  const auto add = [&](const std::string& what, Unit unit, const std::optional<double>& promised, double low,
                       double high, double measured) {
    if (promised && *promised > 0) rows.push_back({what, unit, *promised, low, high, measured});
  };
  if (promise_.phases.empty()) {
    const PhaseFacts& facts = phases_.front();
    const double value = promise_.step_seconds.value_or(1);
    const double low = promise_.step_low.value_or(value), high = promise_.step_high.value_or(value);
    if (facts.full_steps > 0) add("step", Unit::seconds, promise_.step_seconds, low, high, facts.step_mean());
    if (facts.samples == 0) return;
    const double rate = promise_.samples_per_second.value_or(0);
    add("samples", Unit::per_second, promise_.samples_per_second, rate * value / high, rate * value / low,
        static_cast<double>(facts.samples) / facts.seconds);
    return;
  }
  for (size_t i = 0; i < phases_.size(); ++i) {
    const PhasePromise& promised = promise_.phases[i];
    const double value = promised.step_seconds.value_or(0), features = promised.features_seconds;
    const double low = promised.step_low.value_or(value), high = promised.step_high.value_or(value);
    if (phases_[i].features > 0 && value > 0) {
      // The interval of the step is that of the whole network's operators too.
      add(text("phase ", i + 1, ": features"), Unit::seconds, features, features * low / value, features * high / value,
          phases_[i].features);
    }
    if (phases_[i].full_steps == 0) continue;
    add(text("phase ", i + 1, ": step"), Unit::seconds, promised.step_seconds, low, high, phases_[i].step_mean());
  }
}

std::vector<Comparison> Facts::compare() const {
  std::vector<Comparison> rows;
  // The interval of the step carries over to what is made of steps.
  const double value = promise_.step_seconds.value_or(1);
  const double down = promise_.step_low.value_or(value) / value;
  const double up = promise_.step_high.value_or(value) / value;
  const auto add = [&](const char* what, Unit unit, std::optional<double> promised, double low, double high,
                       double measured) {
    if (promised && *promised > 0) rows.push_back({what, unit, *promised, *promised * low, *promised * high, measured});
  };
  const double start_up = promise_.start_up_seconds.value_or(0);
  const double start_low = promise_.start_up_low.value_or(start_up);
  const double start_high = promise_.start_up_high.value_or(start_up);
  if (start_up_ && start_up > 0) {
    rows.push_back({"start-up", Unit::seconds, start_up, start_low, start_high, *start_up_});
  }
  add_steps(rows);
  if (memory_) {
    add("peak memory", Unit::bytes, promised_memory(), 1 - promise_.memory_tolerance, 1 + promise_.memory_tolerance,
        *memory_);
  }
  if (saves_ > 0) {
    add("save", Unit::seconds, promise_.save_seconds, 1 / (1 + kOneSaveTolerance), 1 + kOneSaveTolerance,
        mean_of(save_seconds_, saves_));
  }
  // Epochs of different phases have nothing in common.
  const bool alike = promise_.phases.size() <= 1;
  if (epochs_ > 0 && alike) {
    add("epoch", Unit::seconds, promise_.epoch_seconds, down, up, mean_of(epoch_seconds_, epochs_));
  }
  if (total_ && promise_.total_seconds.value_or(0) > 0) {  // start-ups are no steps: they have an interval of their own
    const auto jobs = static_cast<double>(promise_.jobs);
    const double total = *promise_.total_seconds, steps = total - jobs * start_up;
    rows.push_back(
        {"total", Unit::seconds, total, steps * down + jobs * start_low, steps * up + jobs * start_high, *total_});
  }
  return rows;
}

std::vector<std::string> Facts::explain() const {
  const auto rows = compare();
  const auto outside = [&](const std::string& what) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const auto& row) { return row.what.ends_with(what) && !row.inside(); });
  };
  std::vector<std::string> why;
  if (outside("step") && !by_class_.empty() && !promise_.by_class.empty() && promise_.phases.empty()) {
    for (const auto& row : by_difference(promise_.by_class, by_class_)) {
      if (why.size() == 4 || std::abs(row.difference()) < 0.02 * *promise_.step_seconds) break;
      why.push_back(text(row.name, ": ", base::format_duration(row.measured), " a step, promised ",
                         base::format_duration(row.promised)));
    }
  }
  if (outside("step") && why.empty()) {
    const double share = now().full_communication / std::max(1e-12, now().full_seconds);
    why.push_back(text("of a step: computing ", base::percent(1 - share, 0), ", waiting for other ranks ",
                       base::percent(share, 0)));
  }
  const double waiting = now().data / std::max(1e-12, now().seconds);
  if (outside("samples") && waiting > 0.03) {
    why.push_back(text("waiting for data: ", base::percent(waiting, 0), " of the time"));
  }
  return why;
}

std::string to_text(const std::vector<Comparison>& rows) {
  using base::Align;
  base::Table table({{"what"},
                     {"promised", Align::right},
                     {"from", Align::right},
                     {"to", Align::right},
                     {"measured", Align::right},
                     {"deviation", Align::right},
                     {"inside"}});
  for (const auto& row : rows) {
    table.add({row.what, show(row.promised, row.unit), show(row.low, row.unit), show(row.high, row.unit),
               show(row.measured, row.unit), signed_percent(row.deviation()), row.inside() ? "yes" : "NO"});
  }
  return table.to_text();
}

base::Json to_json(const std::vector<Comparison>& rows) {
  constexpr const char* kUnits[] = {"s", "1/s", "B"};
  base::Json all = base::Json::array();
  for (const auto& row : rows) {
    base::Json json = base::Json::object();
    json["what"] = row.what;
    json["unit"] = kUnits[static_cast<size_t>(row.unit)];
    json["promised"] = row.promised;
    json["low"] = row.low;
    json["high"] = row.high;
    json["measured"] = row.measured;
    json["deviation"] = row.deviation();
    json["inside"] = row.inside();
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace lockstep::training
