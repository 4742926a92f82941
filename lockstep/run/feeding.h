// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/spec/job.h"

// How batches reach the device: asked by the run, and by `plan` before there is one.
namespace lockstep::run {

// Whether training takes its batches from a feeder, which is a step ahead. Single precision stays with the plain way.
bool is_fed(spec::Pixels pixels, bool on_gpu);

constexpr int64_t kFeederSlots = 2;  // one in use, one being filled

}  // namespace lockstep::run
