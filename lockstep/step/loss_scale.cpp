// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/loss_scale.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::step {
namespace {

constexpr double kFirst = 65536;
constexpr int64_t kGrowAfter = 2000;  // good steps

}  // namespace

LossScale::LossScale(bool used) : used_(used), value_(used ? kFirst : 1) {}

double LossScale::value() const {
  return value_;
}

bool LossScale::can_shrink() const {
  return used_ && value_ > 1;
}

void LossScale::update(bool good) {
  if (!used_) return;
  good_steps_ = good ? good_steps_ + 1 : 0;
  if (!good) {
    value_ = std::max(1.0, value_ / 2);
  } else if (good_steps_ == kGrowAfter) {
    value_ *= 2;
    good_steps_ = 0;
  }
}

std::vector<model::Named> LossScale::state() const {
  if (!used_) return {};
  return {{"loss_scale", at::tensor({value_, static_cast<double>(good_steps_)}, at::kDouble)}};
}

void LossScale::load_state(const std::vector<model::Named>& state) {
  if (!used_) return;
  const auto found =
      std::find_if(state.begin(), state.end(), [](const auto& entry) { return entry.name == "loss_scale"; });
  if (found == state.end() || found->tensor.numel() != 2) {
    throw base::Error(base::Blame::user, "the saved state has no fitting 'loss_scale'",
                      "the checkpoint belongs to another precision: start a new run with --run");
  }
  value_ = found->tensor[0].item<double>();
  good_steps_ = static_cast<int64_t>(found->tensor[1].item<double>());
}

}  // namespace lockstep::step
