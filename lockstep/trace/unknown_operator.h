// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/boxing/KernelFunction.h>

namespace lockstep::trace {

// The simulated GPU's way to run an operator that no rule describes: libtorch's Meta kernel says what its results look
// like, and the recorder is told that its time is an estimate from the bytes of its tensors. A bug with the operator's
// name where libtorch has no such kernel.
void run_unknown_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace lockstep::trace
