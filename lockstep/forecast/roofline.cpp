// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/roofline.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {
namespace {

using base::text;

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
// What one core of a server processor draws from memory alone; STREAM on a single core of Zen 3, Zen 4 and Ice Lake
// gives 12 to 20 GB/s.
constexpr double kBandwidthOfOneCore = 15e9;

double stated(const catalogue::Number& value, const std::string& id, const char* key, const char* list) {
  if (value && *value > 0) return *value;
  throw base::Error(base::Blame::user,
                    text("'", id, "' has no ", key, " in the catalogue: its time cannot be foretold"),
                    text("put a row of ", id, " with this key into ~/.config/lockstep/catalogue/", list, ".json"));
}

void set(Rates& rates, NumberType type, double flops) {
  rates.flops[static_cast<size_t>(type)] = flops;
}

// The rate of a 16-bit type: tensor cores, else what stands in for them.
double sixteen_bit_rate(const catalogue::Gpu& gpu, const catalogue::Number& tensor, const char* key, Rates& rates) {
  if (!tensor) return kTera * stated(tensor, gpu.id, key, "gpus");
  if (*tensor > 0) return *tensor * kTera;
  const bool half = std::string_view(key) == "tflops_fp16";
  const double vector = half ? gpu.tflops_fp16_vector.value_or(0) : 0;
  const double fp32 = gpu.tflops_fp32.value_or(0);
  if (half) {  // of bf16 and tf32 the reasons of an option say more
    rates.notes.push_back({NumberType::fp16, text(gpu.id, " has no fp16 tensor cores: counted at its ",
                                                  vector > fp32 ? "fp16 vector" : "fp32", " rate")});
  }
  return std::max(vector, fp32) * kTera;
}

}  // namespace

Rates rates_of(const catalogue::Gpu& gpu) {
  Rates rates{.id = gpu.id, .kind = DeviceKind::gpu};
  rates.capability = gpu.compute_capability.value_or("");
  rates.variant_of = gpu.variant_of.value_or("");
  rates.bandwidth = stated(gpu.bandwidth_gbs, gpu.id, "bandwidth_gbs", "gpus") * kGiga;
  const double fp32 = stated(gpu.tflops_fp32, gpu.id, "tflops_fp32", "gpus") * kTera;
  set(rates, NumberType::fp32, fp32);
  set(rates, NumberType::integer, fp32);
  set(rates, NumberType::fp64, fp32 / 2);
  set(rates, NumberType::fp16, sixteen_bit_rate(gpu, gpu.tflops_fp16, "tflops_fp16", rates));
  set(rates, NumberType::bf16, sixteen_bit_rate(gpu, gpu.tflops_bf16, "tflops_bf16", rates));
  // Where a maker does not state tf32 it is half of the 16-bit rate on every GPU that has both.
  const double tf32 = gpu.tflops_tf32.value_or(gpu.tflops_bf16.value_or(0) / 2) * kTera;
  set(rates, NumberType::tf32, tf32 > 0 ? tf32 : fp32);
  return rates;
}

bool has_rates(const catalogue::Gpu& gpu) {
  return gpu.bandwidth_gbs.value_or(0) > 0 && gpu.tflops_fp32.value_or(0) > 0 && gpu.tflops_fp16 && gpu.tflops_bf16;
}

Rates rates_of(const catalogue::Cpu& cpu, int64_t cores) {
  base::ensure(cores > 0, "some cores compute");
  Rates rates{.id = cpu.id, .kind = DeviceKind::cpu};
  rates.clock_ghz = stated(cpu.base_ghz, cpu.id, "base_ghz", "cpus");
  const double socket = stated(cpu.bandwidth_gbs, cpu.id, "bandwidth_gbs", "cpus") * kGiga;
  const auto count = static_cast<double>(cores);
  const double sockets = std::max(1.0, count / static_cast<double>(std::max<int64_t>(1, cpu.cores.value_or(cores))));
  rates.bandwidth = std::min(socket * sockets, count * kBandwidthOfOneCore);
  const double fp32 =
      count * rates.clock_ghz * kGiga * stated(cpu.fp32_flops_per_cycle, cpu.id, "fp32_flops_per_cycle", "cpus");
  const std::string units = cpu.vector.value_or("");
  // AMX multiplies 1,024 pairs of bf16 a cycle, AVX-512 fp32 32; avx512_bf16 doubles the vector rate.
  const bool amx = units.find("amx") != std::string::npos;
  const bool bf16 = units.find("bf16") != std::string::npos;
  for (const auto type : {NumberType::fp32, NumberType::tf32, NumberType::fp16, NumberType::integer}) {
    set(rates, type, fp32);
  }
  set(rates, NumberType::fp64, fp32 / 2);
  set(rates, NumberType::bf16, fp32 * (amx ? 16 : bf16 ? 2 : 1));
  if (!amx && !bf16) {
    rates.notes.push_back({NumberType::bf16, text(cpu.id, " has no bf16 units: counted at its fp32 rate")});
  }
  return rates;
}

Roofline roofline(const Operator& op, const Rates& rates) {
  return {op.flops / rates.flops_of(op.type), op.bytes / rates.bandwidth};
}

}  // namespace lockstep::forecast
