// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/catalogue/rows.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/forecast/time.h"

namespace lockstep::forecast {

// Seconds of one collective of `bytes` (the whole tensor: what an all_gather leaves, what a reduce_scatter takes).
// On GPUs NCCL's own cost model: the best of ring and tree with its three protocols. 0 for one rank.
double collective_seconds(CollectiveKind kind, double bytes, const Network& network);
// On CPUs, through MPI: latency and bandwidth.
double mpi_collective_seconds(CollectiveKind kind, double bytes, const Network& network);

// Share of the GPU that a running collective takes from the computing.
double overlap_cost(const Network& network);

// Ranks on GPUs of this type, `per_node` to a node: NVLink when the GPU has it and it joins so many, else its PCIe, at
// half its rate where GPUs have no access to each other. The rate between nodes
// is `inter_rate` (bytes per second and direction, per node). User error when ranks do not fill nodes evenly, when more
// than one node is needed and no rate is given, or when the GPU's PCIe generation is not known.
Network derive_network(const catalogue::Gpu& gpu, int64_t ranks, int64_t per_node, double inter_rate = 0);

// Bytes per second and direction of "PCIe 4.0 x16"; nothing when the words say something else.
std::optional<double> pcie_rate(const std::string& words);

}  // namespace lockstep::forecast
