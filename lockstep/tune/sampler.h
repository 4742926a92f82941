// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/tune/space.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

struct SamplerOrder {
  spec::StudySampler sampler = spec::StudySampler::tpe;
  uint64_t seed = 1;
  int64_t startup = 10;  // of TPE: uniform draws before it judges
  bool maximize = false;
};

// The values of trial `number`, given the trials so far: the same whoever asks, and whenever. None: a grid is used up.
std::optional<Values> sample(const SamplerOrder& order, const Space& space, const std::vector<Trial>& trials,
                             int64_t number);

// How many trials a grid has. User error for a range that has neither step nor points, or above a million.
int64_t grid_size(const Space& space);

}  // namespace lockstep::tune
