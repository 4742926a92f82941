// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/model/network.h"

namespace lockstep::verbs {

// CRC-32C over the bytes of all of them, as they lie in memory.
uint32_t checksum(const std::vector<model::Named>& tensors);

// Machine error, on every rank, when these tensors are not the same bits everywhere: names the ranks that differ from
// the most, and the first tensor. Every rank calls it with the same names, after `step` steps.
void check_sync(comm::Group& group, const std::vector<model::Named>& tensors, int64_t step);

}  // namespace lockstep::verbs
