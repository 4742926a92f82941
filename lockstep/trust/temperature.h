// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/trust/class_rows.h"

namespace lockstep::trust {

constexpr double kLeastTemperature = 0.05, kMostTemperature = 20;

// The temperature whose probabilities softmax(logits / T) have the least negative log-likelihood on `rows` (Guo et al.,
// "On calibration of modern neural networks", 2017); within the two bounds, at one of which rows end that are all right
// or no better than chance. The order of the classes of a row stays. REQUIRES: rows.
double fit_temperature(const ClassRows& rows);

}  // namespace lockstep::trust
