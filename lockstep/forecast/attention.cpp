// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/attention.h"

#include <cstdlib>

namespace lockstep::forecast {

Attention choose_attention(const catalogue::Gpu* gpu, const std::string& precision) {
  if (!gpu) return Attention::math;
  const bool sixteen = precision == "bf16" || precision == "amp";
  if (gpu->vendor != "NVIDIA") return sixteen ? Attention::flash : Attention::efficient;
  const int major = std::atoi(gpu->compute_capability.value_or("0").c_str());
  if (sixteen && (major == 9 || major == 10)) return Attention::cudnn;
  if (sixteen && major >= 8) return Attention::flash;
  if (major < 5 || precision == "bf16") return Attention::math;
  return Attention::efficient;
}

}  // namespace lockstep::forecast
