// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "lockstep/base/random.h"
#include "lockstep/trust/class_rows.h"

namespace lockstep::trust {

// For tests: rows of a network that knows the probabilities and says them `sharpness` times too surely: its right
// temperature is `sharpness`.
inline ClassRows drawn_rows(int64_t count, int64_t classes, double sharpness, uint64_t seed) {
  ClassRows rows;
  for (int64_t i = 0; i < count; ++i) {
    base::Random random(seed, 1, static_cast<uint64_t>(i));
    std::vector<float> logits(static_cast<size_t>(classes));
    for (float& logit : logits) logit = static_cast<float>(2 * random.normal());
    const auto shares = softmax(logits);
    double left = random.uniform();
    int64_t label = 0;
    while (label + 1 < classes && left >= shares[static_cast<size_t>(label)]) {
      left -= shares[static_cast<size_t>(label++)];
    }
    for (float& logit : logits) logit *= static_cast<float>(sharpness);
    rows.add(logits, label, i);
  }
  return rows;
}

}  // namespace lockstep::trust
