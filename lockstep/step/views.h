// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/model/named_tensors.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// What a network is shown of the samples of a batch, in this order: the images as they are, then those that `views`
// adds to them, made on their device. A corner is 7/8 of each side, scaled to the whole size. Of a batch without images
// there is one view.
std::vector<model::NamedTensors> views_of(const model::NamedTensors& fields, spec::Views views);

int64_t num_views(spec::Views views);

}  // namespace lockstep::step
