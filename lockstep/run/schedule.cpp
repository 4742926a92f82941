// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

// From `from` (share 0) to `to` (share 1) along half a cosine.
double cosine_between(double from, double to, double share) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

// Smith and Topin, "Super-convergence" (2018), with the two cosine arcs of torch.optim.lr_scheduler.OneCycleLR.
double onecycle(const spec::Schedule& schedule, const StepInterval& interval, double step) {
  const double last = static_cast<double>(interval.num_steps) - 1;
  const double peak = std::max(1e-12, schedule.peak_share * static_cast<double>(interval.num_steps) - 1);
  if (step <= peak) return cosine_between(interval.lr / schedule.start_divisor, interval.lr, step / peak);
  return cosine_between(interval.lr, schedule.final_lr, (step - peak) / std::max(1e-12, last - peak));
}

double steps_down(const spec::Schedule& schedule, const StepInterval& interval, double step) {
  const auto passed = std::count_if(schedule.step_epochs.begin(), schedule.step_epochs.end(), [&](double epoch) {
    return step >= std::round(epoch * static_cast<double>(interval.steps_per_epoch));
  });
  return interval.lr * std::pow(schedule.gamma, static_cast<double>(passed));
}

}  // namespace

double learning_rate(const spec::Schedule& schedule, const StepInterval& interval, int64_t step) {
  const auto now = static_cast<double>(step);
  if (schedule.name == spec::ScheduleName::onecycle) return onecycle(schedule, interval, now);
  const double warmup = std::round(schedule.warmup_epochs * static_cast<double>(interval.steps_per_epoch));
  if (now < warmup && interval.warmup_from > 0) {
    return interval.warmup_from + (interval.lr - interval.warmup_from) * now / warmup;
  }
  if (now < warmup) return interval.lr * (now + 1) / warmup;
  const double length = std::max(1.0, static_cast<double>(interval.num_steps) - warmup);
  const double share = std::min(1.0, (now - warmup) / length);
  switch (schedule.name) {
    case spec::ScheduleName::step:
      return steps_down(schedule, interval, now);
    case spec::ScheduleName::cosine:
      return cosine_between(interval.lr, schedule.final_lr, share);
    case spec::ScheduleName::polynomial:
      return schedule.final_lr + (interval.lr - schedule.final_lr) * std::pow(1 - share, schedule.power);
    default:
      return interval.lr;
  }
}

double peak_rate(const spec::Training& training) {
  if (training.schedule.scale == spec::RateRule::none) return training.optimizer.lr;
  const double times = static_cast<double>(training.global_batch) / static_cast<double>(training.schedule.base_batch);
  return training.optimizer.lr * (training.schedule.scale == spec::RateRule::linear ? times : std::sqrt(times));
}

double warmup_start(const spec::Training& training) {
  return peak_rate(training) > training.optimizer.lr ? training.optimizer.lr : 0;
}

std::string rate_rule_text(const spec::Training& training) {
  if (training.schedule.scale == spec::RateRule::none) return "";
  const bool root = training.schedule.scale == spec::RateRule::sqrt;
  return base::text("learning rate ", peak_rate(training), " = ", training.optimizer.lr, root ? " x sqrt(" : " x ",
                    training.global_batch, " / ", training.schedule.base_batch, root ? ")" : "", " (",
                    name_of(training.schedule.scale), " rule)",
                    training.schedule.warmup_epochs > 0 ? base::text(", warm-up from ", warmup_start(training), " in ",
                                                                     training.schedule.warmup_epochs, " epochs")
                                                        : "");
}

}  // namespace lockstep::run
