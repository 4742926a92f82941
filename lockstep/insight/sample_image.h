// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::insight {

// The file of an image as evaluation shows it to a network: [1, 3, height, width], float. User error when it cannot be
// read.
at::Tensor sample_image(const task::Task& task, const spec::Data& data, std::span<const std::byte> file,
                        at::Device device = at::kCPU);

}  // namespace lockstep::insight
