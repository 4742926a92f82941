// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/feeding.h"

namespace lockstep::run {

bool is_fed(spec::Pixels pixels, bool on_gpu) {
  return on_gpu && pixels != spec::Pixels::fp32;
}

}  // namespace lockstep::run
