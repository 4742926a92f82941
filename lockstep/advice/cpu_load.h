// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/catalogue/rows.h"

namespace lockstep::advice {

// A program that keeps processors busy, measured by timing it once.
struct CpuLoad {
  std::string name;
  double hours = 0;
  double cores = 0;
  double ghz = 0;  // of those cores; 0: not said
};

// "psp=72@96": 72 hours on 96 cores; "psp=72@96x2.4GHz" also says their clock. User error for anything else.
CpuLoad parse_cpu_load(const std::string& words);

// Its hours on all cores of that processor: by cores, and by clock where both are known. Second threads of a core are
// not counted. REQUIRES: the row states its cores.
double hours_on(const CpuLoad& load, const catalogue::Cpu& cpu);

}  // namespace lockstep::advice
