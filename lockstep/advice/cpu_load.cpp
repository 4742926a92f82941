// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/cpu_load.h"

#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::advice {
namespace {

double above_zero(const std::string& number, const std::string& words) {
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (!number.empty() && *end == '\0' && std::isfinite(value) && value > 0) return value;
  throw base::Error(base::Blame::user, base::text("--cpu-load ", words, ": '", number, "' is not a number above 0"),
                    "NAME=HOURS@CORES, for example psp=72@96 or psp=72@96x2.4GHz");
}

}  // namespace

CpuLoad parse_cpu_load(const std::string& words) {
  const size_t equals = words.find('=');
  const size_t at = words.find('@', equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || equals == 0 || at == std::string::npos) {
    throw base::Error(base::Blame::user, base::text("--cpu-load ", words, ": not NAME=HOURS@CORES"),
                      "time the program once: psp=72@96 is 72 hours on 96 cores");
  }
  std::string cores = words.substr(at + 1);
  std::string clock;
  if (const size_t times = cores.find('x'); times != std::string::npos) {
    clock = cores.substr(times + 1);
    if (clock.ends_with("GHz")) clock.resize(clock.size() - 3);
    cores.resize(times);
    above_zero(clock, words);
  }
  return {words.substr(0, equals), above_zero(words.substr(equals + 1, at - equals - 1), words),
          above_zero(cores, words), clock.empty() ? 0 : above_zero(clock, words)};
}

double hours_on(const CpuLoad& load, const catalogue::Cpu& cpu) {
  base::ensure(cpu.cores && *cpu.cores > 0, "a processor of the catalogue states its cores");
  const double clock = load.ghz > 0 && cpu.base_ghz ? load.ghz / *cpu.base_ghz : 1;
  return load.hours * load.cores / static_cast<double>(*cpu.cores) * clock;
}

}  // namespace lockstep::advice
