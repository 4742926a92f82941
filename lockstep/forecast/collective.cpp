// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/collective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {
namespace {

using base::text;

constexpr double kMicro = 1e-6;

// Figures of NCCL's cost model (src/graph/tuning.cc of NCCL 2.2x), in microseconds, for its protocols.
enum Protocol : size_t { kLL, kLL128, kSimple, kProtocols };
using PerProtocol = std::array<double, kProtocols>;
constexpr PerProtocol kRingBase = {6.6, 14, 8.4};
constexpr PerProtocol kTreeBase = {6.8, 14, 8.4};
constexpr PerProtocol kNvlinkRing = {.6, 1.9, 3.4};
constexpr PerProtocol kNvlinkTree = {.6, 1.25, 4};
constexpr PerProtocol kPcieRing = {1, 2.5, 5.7};
constexpr PerProtocol kPcieTree = {1, 1.9, 4};
constexpr PerProtocol kNetRing = {2.7, 4, 14};
constexpr PerProtocol kNetTree = {5, 8.5, 14};
constexpr PerProtocol kBandwidth = {.5, .92, 1};  // LL sends a flag with each word, LL128 one with each 120 bytes
constexpr double kTreeBandwidth = .92 * .85;
constexpr double kTreeCorrection = .7;  // NCCL's table goes from 0.4 to 1.0 with the size; this is its middle

// Of a link's stated rate: 20 to 20.6 GB/s of each 25 GB/s NVLink, 12 of PCIe 3's 15.75, 12 of 100 Gbit/s.
constexpr double kNvlinkShare = .81;
constexpr double kPcieShare = .76;
constexpr double kNetShare = .96;

struct Hops {
  PerProtocol ring;
  PerProtocol tree;
};

Hops intra_hops(const Network& network) {
  Hops hops = network.nvlink ? Hops{kNvlinkRing, kNvlinkTree} : Hops{kPcieRing, kPcieTree};
  if (network.intra_latency > 0) {
    hops.ring.fill(network.intra_latency / kMicro);
    hops.tree.fill(network.intra_latency / kMicro);
  }
  return hops;
}

Hops inter_hops(const Network& network) {
  Hops hops{kNetRing, kNetTree};
  if (network.inter_latency > 0) {
    hops.ring.fill(network.inter_latency / kMicro);
    hops.tree.fill(network.inter_latency / kMicro);
  }
  return hops;
}

// Bytes per second that go round the slowest link of the ring.
double bus_bandwidth(const Network& network) {
  double bandwidth = std::numeric_limits<double>::infinity();
  if (network.ranks > network.nodes) {
    bandwidth = network.intra_rate * (network.nvlink ? kNvlinkShare : kPcieShare);
  }
  if (network.nodes > 1) bandwidth = std::min(bandwidth, network.inter_rate * kNetShare);
  return bandwidth;
}

void check_rates(const Network& network) {
  base::ensure(network.nodes >= 1 && network.ranks >= network.nodes, "every node has a rank");
  const bool intra = network.ranks <= network.nodes || network.intra_rate > 0;
  if (intra && (network.nodes == 1 || network.inter_rate > 0)) return;
  throw base::Error(base::Blame::user,
                    text("several ranks exchange gradients, and the rate of the link ",
                         intra ? "between the nodes" : "within a node", " is not known"),
                    text("state it in the machine document: links.", intra ? "inter" : "intra", ".rate"));
}

}  // namespace

double collective_seconds(CollectiveKind kind, double bytes, const Network& network) {
  if (network.ranks <= 1) return 0;
  check_rates(network);
  const auto n = static_cast<double>(network.ranks);
  const auto nodes = static_cast<double>(network.nodes);
  const double bus = bus_bandwidth(network);
  const Hops intra = intra_hops(network);
  const Hops inter = inter_hops(network);
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  const bool pair = kind == CollectiveKind::send;
  const double steps = pair ? 1 : all_reduce ? 2 * (n - 1) : n - 1;
  const double net_steps = pair ? std::min(1.0, nodes - 1) : (all_reduce ? 2 : 1) * (nodes - 1);
  // Of the whole tensor, what passes each link: everything for a broadcast or a message, a share for the others.
  const double passes = pair || kind == CollectiveKind::broadcast ? 1 : steps / n;
  double best = std::numeric_limits<double>::infinity();
  for (size_t p = 0; p < kProtocols; ++p) {
    if (p == kLL128 && !network.nvlink) continue;  // needs 128-byte stores that stay whole
    const double slow_start = p == kSimple && network.nodes > 1 ? 1.4 : 1;
    const double ring =
        (kRingBase[p] + (steps - net_steps) * intra.ring[p] + net_steps * inter.ring[p]) * slow_start * kMicro;
    best = std::min(best, ring + bytes * passes / (bus * kBandwidth[p]));
    if (!all_reduce) continue;
    const double tree =
        (kTreeBase[p] + 2 * ((n / nodes - 1) * intra.tree[p] + std::log2(nodes) * inter.tree[p])) * kMicro;
    best = std::min(best, tree + bytes * 2 / (bus * kBandwidth[p] * kTreeBandwidth * kTreeCorrection));
  }
  return best;
}

double mpi_collective_seconds(CollectiveKind kind, double bytes, const Network& network) {
  if (network.ranks <= 1) return 0;
  check_rates(network);
  const auto n = static_cast<double>(network.ranks);
  const bool far = network.nodes > 1;
  const double rate = far ? network.inter_rate * kNetShare : network.intra_rate;
  const double given = far ? network.inter_latency : network.intra_latency;
  const double latency = given > 0 ? given : far ? 3 * kMicro : kMicro;  // Open MPI, small messages
  const bool pair = kind == CollectiveKind::send;
  const double rounds = pair ? 1 : std::ceil(std::log2(n));
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  const double passes = pair || kind == CollectiveKind::broadcast ? 1 : (all_reduce ? 2 : 1) * (n - 1) / n;
  return (all_reduce ? 2 : 1) * rounds * latency + bytes * passes / rate;
}

double overlap_cost(const Network& network) {
  // Calculon: a ring over NVLink occupies 15 % of the processors, over the network 2 %.
  if (network.ranks <= 1) return 0;
  return network.nodes > 1 ? .02 : .15;
}

std::optional<double> pcie_rate(const std::string& words) {
  // Bytes per second of one lane and direction, after encoding.
  constexpr std::array<double, 7> kLane = {0, .25e9, .5e9, .985e9, 1.969e9, 3.938e9, 7.563e9};
  int generation = 0, lanes = 0;
  if (std::sscanf(words.c_str(), "PCIe %d.0 x%d", &generation, &lanes) != 2) return std::nullopt;
  if (generation < 1 || generation >= static_cast<int>(kLane.size()) || lanes < 1) return std::nullopt;
  return kLane[static_cast<size_t>(generation)] * lanes;
}

Network derive_network(const catalogue::Gpu& gpu, int64_t ranks, int64_t per_node, double inter_rate) {
  base::ensure(ranks >= 1 && per_node >= 1, "there are ranks and places for them");
  Network network{.ranks = ranks, .nodes = (ranks + per_node - 1) / per_node, .inter_rate = inter_rate};
  if (ranks % network.nodes != 0) {
    throw base::Error(base::Blame::user, text(ranks, " GPUs do not fill nodes of ", per_node, " evenly"),
                      text("use a multiple of ", per_node));
  }
  if (ranks == 1) return network;
  if (network.nodes > 1 && inter_rate <= 0) {
    throw base::Error(base::Blame::user, text(ranks, " GPUs at ", per_node, " a node need a network of known rate"),
                      "state links.inter.rate in the machine document");
  }
  // A bridge joins two GPUs (or four); more of them meet over PCIe.
  network.nvlink = gpu.nvlink_gbs.value_or(0) > 0 && ranks / network.nodes <= gpu.nvlink_gpus.value_or(ranks);
  if (network.nvlink) {
    network.intra_rate = *gpu.nvlink_gbs * 1e9 / 2;
    return network;
  }
  const auto rate = pcie_rate(gpu.pcie.value_or(""));
  if (!rate) {
    throw base::Error(
        base::Blame::user,
        text("the link of '", gpu.id, "' (", gpu.pcie.value_or("not stated"), ") has no rate that is known"),
        "state links.intra.rate in the machine document");
  }
  // Where the driver gives no peer access every byte goes into the node's memory and out again.
  network.intra_rate = gpu.peer.value_or("") == "none" ? *rate / 2 : *rate;
  return network;
}

}  // namespace lockstep::forecast
