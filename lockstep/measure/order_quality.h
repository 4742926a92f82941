// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/loader/extents.h"
#include "lockstep/loader/window_order.h"

namespace lockstep::measure {

// How well an order mixes, over a few epochs of batches. Figures of a good shuffle stand in `full` beside it.
struct OrderQuality {
  std::string order;
  double displacement = 0;     // mean distance of a sample from where it is stored, as a share of all; 1/3 is full
  double neighbours = 0;       // of a sample's 50 nearest neighbours in storage, the mean number in its batch
  double met_again = 0;        // of two samples in one batch: how often they meet again in the next epoch, over chance
  double classes = 0;          // distinct classes in a batch, mean
  double class_deviation = 0;  // chi-squared of a batch's classes over that of a random draw; 1 is full
};

struct OrderBench {
  int64_t batch = 256;
  int64_t epochs = 4;
  int64_t seed = 1;
};

// `labels` of all samples, as they are stored. REQUIRES: two epochs at least.
OrderQuality measure_order(const std::string& name, loader::Sequence& sequence, const std::vector<int32_t>& labels,
                           const OrderBench& bench);

}  // namespace lockstep::measure
