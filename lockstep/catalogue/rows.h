// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::catalogue {

// Rows of the catalogue. Units stand in the names; nothing = the source does not say (JSON null). Every row has a
// source and a date. columns.cpp lists each member once; parsing, printing and tables follow from that list.

using Number = std::optional<double>;
using Count = std::optional<int64_t>;
using Text = std::optional<std::string>;

// One device as the driver counts it: one die of a K80 or MI250X, not the board. A rate of 0 means that the device does
// not have it (no tensor cores, no bf16). Rates are dense, with fp32 accumulation where the GPU has a choice.
struct Gpu {
  std::string id;
  std::string name;
  std::string vendor;
  Number memory_gb;         // as the maker states it
  Count driver_memory_mib;  // as the driver reports it
  Number bandwidth_gbs;
  Number tflops_fp32;
  Number tflops_fp16;
  Number tflops_bf16;
  Number tflops_tf32;
  Number tflops_fp16_vector;  // fp16 outside the tensor cores, where it matters
  Number nvlink_gbs;          // both directions, all links
  Count nvlink_gpus;          // that NVLink joins: 2 by a bridge; nothing: all of a node
  Text peer;                  // "none": without NVLink GPUs reach each other through the node's memory only
  Text pcie;
  Number tdp_w;
  Text launch;
  Number price_usd;  // of one board
  Count cores;
  Text compute_capability;
  Text variant_of;  // the GPU whose chip and memory it has, with other clocks, power or links
  Text last_cuda;   // the last toolkit that drives it; nothing for an NVIDIA GPU: still supported
  Count dies_per_board;
  std::vector<std::string> driver_names;  // as NVML spells it
  std::string notes;
  std::string source;
  std::string date;

  // True for GPUs that the current CUDA (13) no longer drives, and for other makers' GPUs.
  bool planning_only() const { return last_cuda.has_value() || vendor != "NVIDIA"; }
  bool operator==(const Gpu&) const = default;
};

// One socket.
struct Cpu {
  std::string id;
  std::string name;  // as /proc/cpuinfo spells it, without maker and marks
  std::string vendor;
  Count cores;
  Count threads;
  Number base_ghz;
  Text vector;
  Number fp32_flops_per_cycle;  // a core, vector multiply-add
  Number bandwidth_gbs;         // memory, all channels of the socket
  Number tdp_w;
  Number price_gbp;
  std::string notes;
  std::string source;
  std::string date;

  bool operator==(const Cpu&) const = default;
};

struct MachineRow {
  std::string id;
  std::string name;
  Text site;
  Count nodes;
  Count gpus_per_node;            // 0: none; nothing: not stated
  std::vector<std::string> gpus;  // one: certain; several: the source leaves it open; none: not stated, or no GPUs
  Text cpu;
  Count sockets_per_node;
  Count cores_per_node;
  Number memory_gb_per_node;
  Number local_disk_gb;
  Text intra_link;
  Number intra_gbs;  // one direction, per GPU
  Text inter_link;
  Number inter_gbs;  // one direction, per node
  Text file_system;
  Text scheduler;
  Number walltime_h;
  Number price_per_node;
  Text currency;
  Text grant_unit;         // what the centre charges in
  Number node_hour_units;  // units one node costs in an hour
  std::string notes;
  std::string source;
  std::string date;

  bool operator==(const MachineRow&) const = default;
};

// One way to rent.
struct Offer {
  std::string id;
  Text provider;
  std::vector<std::string> gpus;  // several: the source leaves it open which
  Number usd_per_gpu_hour;
  Number free_hours;
  Number session_limit_h;
  Count cores;
  Number memory_gb;
  std::string notes;
  std::string source;
  std::string date;

  bool operator==(const Offer&) const = default;
};

// One workstation part.
struct Part {
  std::string id;
  std::string kind;  // gpu, cpu, memory, ssd, hdd, case, psu, motherboard
  std::string name;
  Number price_gbp;
  Text list;  // whose list of parts it stands in: "2021"; nothing: current
  Text gpu;   // catalogue id
  Text cpu;
  Number capacity_gb;
  Number power_w;
  std::string notes;
  std::string source;
  std::string date;

  bool operator==(const Part&) const = default;
};

}  // namespace lockstep::catalogue
