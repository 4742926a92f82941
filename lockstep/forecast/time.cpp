// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/collective.h"
#include "lockstep/forecast/many_ranks.h"
#include "lockstep/forecast/python_steps.h"

namespace lockstep::forecast {
namespace {

using base::text;

// A step of which the launching thread takes nearly all differs with the processor and what else it does: the same ones
// took 0.75 to 1.35 of the forecast on two H200 nodes (results/promise-h200.json, results/held-out.json).
constexpr double kNearHost = 0.9;
constexpr Spread kHostSpread{.low = 0.75, .high = 1.35};

// From one node of a CUDA graph to the next: the mean in a profile of ResNet-50 on an H200. And the launch of a graph.
constexpr double kGraphGap = 1.4e-6;
constexpr double kGraphLaunch = 60e-6;

// Two causes that have nothing to do with each other: their squares add up. (std::hypot has another last bit from one C
// library to the next.)
Spread joined(const Spread& one, const Spread& other) {
  const auto both = [](double a, double b) {
    const double x = std::log(a), y = std::log(b);
    return std::sqrt(x * x + y * y);
  };
  return {std::exp(-both(one.low, other.low)), std::exp(both(one.high, other.high))};
}

// What an operator without a rule really takes lies between these multiples of what its bytes alone take.
constexpr double kEstimatedLow = 0.25;
constexpr double kEstimatedHigh = 4;

// The last whole step, or everything when the recording has no steps.
std::span<const Event> last_step(const Recording& recording) {
  const auto& events = recording.events;
  size_t begin = 0, end = events.size();
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == EventKind::step_begin) begin = i;
    if (events[i].kind == EventKind::step_end) end = i + 1;
  }
  if (begin >= end) end = events.size();
  return std::span(events).subspan(begin, end - begin);
}

double host_seconds(const Operator& op, const HostCosts& costs) {
  if (op.launches == 0 || op.kind == OperatorClass::view) return costs.view;
  const auto found = costs.by_class.find(op.kind);
  const double first = found == costs.by_class.end() ? costs.operation : found->second;
  return first + static_cast<double>(op.launches - 1) * costs.kernel;
}

const PythonSteps& python_steps() {
  static const PythonSteps kSteps = load_python_steps();
  return kSteps;
}

// The launching thread, the compute stream and the network of one rank, as clocks.
class Clocks {
 public:
  Clocks(const Recording& recording, const std::vector<double>& seconds, const DeviceCalibration& basis, double overlap,
         const std::function<double(const Event&)>& collective)
      : recording_(recording), seconds_(seconds), basis_(basis), rank_(overlap), collective_(collective) {
    if (recording.captured) gap_ = std::min(kGraphGap, basis.gap);
    const double factor = recording.captured ? 0 : is_python_step(recording) ? python_steps().host : 1;
    launches_.reserve(recording.operators.size());
    for (const auto& op : recording.operators) launches_.push_back(factor * host_seconds(op, basis.host));
  }

  void play(std::span<const Event> step) {
    const double first = basis_.host.step + (recording_.captured ? kGraphLaunch : 0);
    host_ += first;
    launching_ += first;
    for (const auto& event : step) {
      if (event.kind == EventKind::run) run(static_cast<size_t>(event.id));
      if (event.kind == EventKind::collective) finished_[event.id] = rank_.send(collective_(event));
      if (event.kind == EventKind::wait) rank_.wait(finished_[event.id]);
    }
  }
  double now() const { return std::max(host_, rank_.device()); }

  double host() const { return launching_; }
  double busy() const { return busy_; }
  double communication() const { return rank_.communication(); }
  double exposed() const { return rank_.exposed(); }

 private:
  void run(size_t index) {
    const Operator& op = recording_.operators[index];
    host_ += launches_[index];
    launching_ += launches_[index];
    if (op.kind == OperatorClass::host) host_ = std::max(host_, rank_.device());  // it asks the device for a number
    const double work = seconds_[index];
    if (work <= 0) return;
    busy_ += work;
    rank_.compute(work, std::max(rank_.device() + gap_ * static_cast<double>(op.launches), host_));
  }

  const Recording& recording_;
  const std::vector<double>& seconds_;
  const DeviceCalibration& basis_;
  RankClocks rank_;
  double gap_ = basis_.gap;
  std::vector<double> launches_;  // seconds of the launching thread, by operator: most run many times
  std::function<double(const Event&)> collective_;
  double host_ = 0, launching_ = 0, busy_ = 0;
  std::map<int64_t, double> finished_;
};

void add_classes(TimeForecast& forecast, const Recording& recording, std::span<const Event> step, const Rates& rates,
                 const std::vector<double>& seconds) {
  double compute_bound = 0;
  std::array<double, static_cast<size_t>(OperatorClass::host) + 1> by_class = {};
  for (const auto& event : step) {
    if (event.kind != EventKind::run) continue;
    const auto& op = recording.operators[static_cast<size_t>(event.id)];
    const double work = seconds[static_cast<size_t>(event.id)];
    forecast.bytes += op.bytes;
    if (work <= 0) continue;
    const Roofline bound = roofline(op, rates);
    by_class[static_cast<size_t>(op.kind)] += work;
    forecast.roofline += bound.seconds();
    if (bound.compute_bound()) compute_bound += work;
  }
  for (size_t i = 0; i < by_class.size(); ++i) {
    if (by_class[i] > 0) forecast.by_class[static_cast<OperatorClass>(i)] = by_class[i];
  }
  if (forecast.device > 0) forecast.compute_bound_share = compute_bound / forecast.device;
}

// Of the types that the step computes in; what the device lacks besides is of no interest.
void add_notes(TimeForecast& forecast, const Recording& recording, std::span<const Event> step, const Rates& rates) {
  for (const RateNote& note : rates.notes) {
    const bool used = std::any_of(step.begin(), step.end(), [&](const Event& event) {
      if (event.kind != EventKind::run) return false;
      const auto& op = recording.operators[static_cast<size_t>(event.id)];
      return op.type == note.type && op.flops > 0;
    });
    if (used) forecast.notes.push_back(note.words);
  }
}

std::string counted(int64_t count, const char* noun) {
  return text(count, " ", noun, count == 1 ? "" : "s");
}

// How the seconds and their interval were obtained.
std::string carried_words(const GpuFamily& family, const DeviceCalibration& basis, Arithmetic arithmetic) {
  const char* left_out = family.unseen() ? "all families' steps, each family and report left out in turn"
                         : family.pooled ? "all families' steps, each report left out in turn"
                                         : "its steps, each report left out in turn";
  return text("time carried over from ", basis.rates.id, " by ", family.name, "'s factor in ", name_of(arithmetic),
              ", ", base::fixed(family.factor(arithmetic), 2), ": ", counted(family.rows, "published step"), " of ",
              counted(family.origins, "report"), "; interval: 80 % of ", left_out,
              "; lockstep bench calibrate measures your own GPU");
}

std::string measured_words(const DeviceCalibration& basis) {
  const std::string where = basis.file.empty() ? "" : text(" (your own: ", basis.file, ")");
  return text("time by the calibration of ", basis.rates.id, where, ", ", basis.date,
              "; interval: 80 % of what was left out of it in turn");
}

std::string variant_words(const DeviceCalibration& basis) {
  return text("time carried over from ", basis.rates.id,
              ", whose chip and memory it has, without a factor; interval: what such rules missed other GPUs by; "
              "lockstep bench calibrate measures your own GPU");
}

std::string python_words() {
  return text("a step of PyTorch's Python: operators and launches carried over from ", python_steps().steps,
              " steps measured on an H200; interval at least ", base::fixed(python_steps().spread.low, 2), " to ",
              base::fixed(python_steps().spread.high, 2), " times, of each of them left out in turn");
}

// Widens the interval by what the seconds of operators without a rule may be off.
void add_estimates(TimeForecast& forecast, const Recording& recording, std::span<const Event> step,
                   const std::vector<double>& seconds) {
  if (recording.estimated.empty()) return;
  double estimated = 0;
  for (const auto& event : step) {
    if (event.kind != EventKind::run) continue;
    const std::string& name = recording.operators[static_cast<size_t>(event.id)].name;
    const auto& names = recording.estimated;
    if (std::find(names.begin(), names.end(), name) != names.end()) estimated += seconds[static_cast<size_t>(event.id)];
  }
  forecast.step.low = std::max(0.0, forecast.step.low - (1 - kEstimatedLow) * estimated);
  forecast.step.high += (kEstimatedHigh - 1) * estimated;
}

// Of each of the recording's operators, in their order.
std::vector<double> operator_seconds(const Recording& recording, const Rates& rates, const Calibration& calibration,
                                     Arithmetic arithmetic) {
  std::vector<double> seconds;
  seconds.reserve(recording.operators.size());
  const double factor = calibration.carry_factor(rates, arithmetic);
  const bool python = is_python_step(recording);
  for (const auto& op : recording.operators) {
    const double beside = python ? python_steps().factor(op, recording.layout) : 1;
    seconds.push_back(factor * beside * calibration.seconds(op, rates, recording.layout));
  }
  return seconds;
}

TimeForecast play(const Recording& recording, const Rates& rates, const Calibration& calibration, int64_t ranks,
                  double overlap, const std::function<double(const Event&)>& collective) {
  const auto step = last_step(recording);
  const Arithmetic arithmetic = arithmetic_of(recording);
  const auto seconds = operator_seconds(recording, rates, calibration, arithmetic);
  const DeviceCalibration& basis = calibration.basis(rates);
  // A step starts with an idle device: the loss of the one before was waited for.
  Clocks clocks(recording, seconds, basis, overlap, collective);
  clocks.play(step);
  TimeForecast forecast;
  forecast.host = clocks.host();
  forecast.device = clocks.busy();
  forecast.communication = clocks.communication();
  forecast.exposed = clocks.exposed();
  const double alone = clocks.now();
  forecast.host_bound = forecast.host > forecast.device + forecast.exposed;
  forecast.skew = wait_for_slowest(alone, ranks);
  const bool measured = calibration.measured(rates);
  const GpuFamily* family = calibration.family(rates);
  const bool python = is_python_step(recording);
  Spread spread = measured ? basis.measured : family ? family->spread : basis.carried_over;
  if (forecast.host > kNearHost * (forecast.device + forecast.exposed)) {
    spread = {std::min(spread.low, kHostSpread.low), std::max(spread.high, kHostSpread.high)};
  }
  if (python) spread = joined(spread, python_steps().spread);
  const double value = alone + forecast.skew;
  forecast.step = {value, value * spread.low, value * spread.high,
                   measured && !python ? Basis::measured : Basis::carried_over};
  // What the ranks wait for the network is known to a factor of two.
  forecast.step.low = std::max(0.0, forecast.step.low - forecast.exposed / 2);
  forecast.step.high += forecast.exposed;
  add_notes(forecast, recording, step, rates);
  if (family) forecast.notes.push_back(carried_words(*family, basis, arithmetic));
  if (calibration.variant(rates)) forecast.notes.push_back(variant_words(basis));
  const bool told = rates.kind == DeviceKind::gpu || !basis.file.empty();  // of processors, only the user's own
  if (measured && told && !python) forecast.notes.push_back(measured_words(basis));
  if (python && rates.kind == DeviceKind::gpu) forecast.notes.push_back(python_words());
  add_classes(forecast, recording, step, rates, seconds);
  add_estimates(forecast, recording, step, seconds);
  return forecast;
}

}  // namespace

std::vector<const Operator*> last_step_operators(const Recording& recording) {
  std::vector<const Operator*> all;
  for (const auto& event : last_step(recording)) {
    if (event.kind == EventKind::run) all.push_back(&recording.operators[static_cast<size_t>(event.id)]);
  }
  return all;
}

TimeForecast forecast_time(const Recording& recording, const catalogue::Gpu& gpu, const Calibration& calibration,
                           const Network& network) {
  return play(recording, rates_of(gpu), calibration, network.ranks, overlap_cost(network), [&](const Event& event) {
    return collective_seconds(event.collective, static_cast<double>(event.bytes), network);
  });
}

TimeForecast forecast_time(const Recording& recording, const catalogue::Cpu& cpu, int64_t cores,
                           const Calibration& calibration, const Network& network) {
  return play(recording, rates_of(cpu, cores), calibration, network.ranks, 0, [&](const Event& event) {
    return mpi_collective_seconds(event.collective, static_cast<double>(event.bytes), network);
  });
}

}  // namespace lockstep::forecast
