// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/stop.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"

namespace lockstep::training {

using base::Blame;
using base::Error;
using base::text;

namespace {

constexpr double kSoon = 3;  // seconds: PBS kills some 10 s after its SIGTERM

}  // namespace

Stop::Stop(const TrainOptions& options, comm::Group& group)
    : started_(base::steady_seconds()), options_(options), group_(group) {}

double Stop::elapsed() const {
  return base::steady_seconds() - started_;
}

std::string Stop::wanted(const forecast::Keeping& keeping) const {
  std::string why = options_.stop();
  if (!why.empty() || !options_.seconds_left) return why;
  return has_time_for(forecast::stop_reserve(*options_.seconds_left, keeping)) ? "" : "walltime";
}

bool Stop::has_time_for(double seconds) const {
  return !options_.seconds_left || elapsed() + seconds <= *options_.seconds_left;
}

bool Stop::is_overdue(double now) const {
  // Alone, a step that is not waited for costs nothing; several ranks could not stop in order without it.
  return was_asked_before(group_.size() == 1 ? kSoon : 60, now);
}

bool Stop::is_overdue_at_start(double now) const {
  return was_asked_before(kSoon, now);
}

bool Stop::was_asked_before(double seconds, double now) const {
  if (options_.stop().empty()) return false;
  double none = 0;
  asked_.compare_exchange_strong(none, now);
  return now - asked_ >= seconds;
}

std::string Stop::check_start(const forecast::Keeping& keeping) const {
  if (!options_.seconds_left) return "";
  const double gone = elapsed();
  const double needed = gone + forecast::least_time(keeping);
  if (needed <= *options_.seconds_left) return "";
  if (options_.restarted) return "walltime";
  const double given = std::max(0.0, *options_.seconds_left + options_.seconds_passed);
  throw Error(Blame::user,
              text("the walltime is too short: ", base::duration_text(given), " from the start of lockstep, ",
                   base::duration_text(gone + options_.seconds_passed), " have passed; one step and saving it need ",
                   base::duration_text(needed - gone)),
              "ask the scheduler for more time, or raise limits.walltime");
}

void Stop::agree(const std::string& mine) {
  const auto asked = group_.all_gather(at::scalar_tensor(mine.empty() ? 0 : 1, at::kLong));
  const auto first = std::find_if(asked.begin(), asked.end(), [](const auto& flag) { return flag.item().toBool(); });
  base::ensure(first != asked.end(), "some rank has asked for the stop");
  const int64_t rank = first - asked.begin();
  const std::string why = comm::broadcast_text(group_, mine, rank);
  reason_ = rank == 0 || why == "walltime" ? why : text(why, " on rank ", rank);
}

void Stop::follow(const std::string& of_rank_0) {
  reason_ = comm::broadcast_text(group_, of_rank_0);
}

}  // namespace lockstep::training
