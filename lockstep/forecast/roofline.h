// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/catalogue/rows.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/spec/choice.h"

namespace lockstep::forecast {

LOCKSTEP_CHOICE(DeviceKind, gpu, cpu)

// What a type is counted at when the device lacks it.
struct RateNote {
  NumberType type = NumberType::fp32;
  std::string words;

  bool operator==(const RateNote&) const = default;
};

// The limits of a device for an operator: operations and bytes per second, as its maker states them.
struct Rates {
  std::string id;  // of the catalogue
  DeviceKind kind = DeviceKind::gpu;
  std::array<double, 6> flops = {};  // by NumberType
  double bandwidth = 0;
  double clock_ghz = 0;         // CPUs; 0: not known
  std::string capability = {};  // GPUs: compute capability; empty: not known
  std::string variant_of = {};  // GPUs: the one whose chip and memory it has; empty: none of the catalogue
  std::vector<RateNote> notes = {};

  double flops_of(NumberType type) const { return flops[static_cast<size_t>(type)]; }
  bool operator==(const Rates&) const = default;
};

// User error, with the key to add, when the catalogue does not state a rate that is needed. A type that the device
// lacks runs at the rate of what it is emulated with (bf16 without such tensor cores: fp32), and a note says so.
Rates rates_of(const catalogue::Gpu& gpu);
bool has_rates(const catalogue::Gpu& gpu);  // all that rates_of() needs
// `cores` of them; a socket's bandwidth is shared, and a few cores cannot draw all of it.
Rates rates_of(const catalogue::Cpu& cpu, int64_t cores);

struct Roofline {
  double compute = 0;  // seconds that the operations take at least
  double memory = 0;   // seconds that the bytes take at least

  double seconds() const { return compute > memory ? compute : memory; }
  bool compute_bound() const { return compute > memory; }
};

Roofline roofline(const Operator& op, const Rates& rates);

}  // namespace lockstep::forecast
