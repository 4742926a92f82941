// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/model/network.h"

namespace lockstep::training {

// Of each tensor one integer, made where the tensor is (of a GPU's nothing else comes down): its elements' bits times
// odd numbers, added up modulo 2^64. One element that differs always shows.
at::Tensor fingerprints(const std::vector<model::Named>& tensors);  // on the host

// Machine error, on every rank, when these tensors are not the same bits everywhere: names the ranks that differ from
// the most, and the first tensor. Every rank calls it with the same names, after `step` steps.
void check_sync(comm::Group& group, const std::vector<model::Named>& tensors, int64_t step);

}  // namespace lockstep::training
