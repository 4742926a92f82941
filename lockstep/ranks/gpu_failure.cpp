// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/gpu_failure.h"

#include <regex>

#include "lockstep/base/text.h"

namespace lockstep::ranks {
namespace {

using base::Blame;
using base::Error;
using base::text;

struct Failure {
  const char* phrase;  // of CUDA's own words (cudaGetErrorString), or libtorch's
  const char* what;
  const char* fix;
};

constexpr Failure kFailures[] = {
    {"no kernel image is available", "the GPU is of a kind that this build of libtorch has no code for",
     "`lockstep doctor` says its compute capability; this build drives 7.5 (Turing) and newer. An older GPU needs a "
     "libtorch built for it: docs/gpu.md"},
    {"driver version is insufficient", "the NVIDIA driver is older than the CUDA that libtorch was built with",
     "update the driver (CUDA 13 needs 580 or newer), or use a libtorch for an older CUDA; `lockstep doctor` shows "
     "both"},
    {"busy or unavailable", "another process has the GPU for itself alone",
     "nvidia-smi names it; wait for it, take another GPU (CUDA_VISIBLE_DEVICES), or ask the site: compute mode "
     "EXCLUSIVE"},
    {"uncorrectable ECC error", "the GPU's memory has an error that it cannot correct (ECC)",
     "start the command again on another node: it goes on from the last checkpoint; tell the site (nvidia-smi -q -d "
     "ECC)"},
    {"unspecified launch failure", "a kernel ended in a fault of the GPU (often Xid 13, 31 or 43 in the kernel log)",
     "start the command again: it goes on from the last checkpoint; should it come back on another node too, report it "
     "with `compute-sanitizer lockstep train ...`"},
    {"illegal memory access", "a kernel touched memory that is not its own (Xid 31 in the kernel log)",
     "start the command again: it goes on from the last checkpoint; should it come back, training.kernels=reference "
     "tells whether it is a kernel of ours; please report it"},
    {"GPU is lost", "the GPU has fallen off the bus (Xid 79 in the kernel log)",
     "another node: this one needs a reset; the same command goes on there from the last checkpoint"},
    {"unknown error", "the driver has lost the GPU and says no more (look for Xid in the kernel log: dmesg)",
     "another node: the same command goes on there from the last checkpoint; tell the site"},
};

// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 5.31 GiB is free."
std::optional<Error> out_of_memory(const std::string& words) {
  static const std::regex kAsked("CUDA out of memory. Tried to allocate ([0-9.]+ [A-Za-z]+)");
  static const std::regex kFree("total capacity of ([0-9.]+ [A-Za-z]+) of which ([0-9.]+ [A-Za-z]+) is free");
  std::smatch asked, free;
  if (!std::regex_search(words, asked, kAsked)) return std::nullopt;
  std::string what = text("the GPU is out of memory: ", asked[1].str(), " more were asked for");
  if (std::regex_search(words, free, kFree)) what += text(", ", free[2].str(), " of ", free[1].str(), " are free");
  return Error(
      Blame::machine, what,
      "a smaller training.micro_batch, or training.recompute=all; `lockstep plan JOB --on here` says what fits");
}

}  // namespace

std::optional<Error> gpu_failure(const std::string& words) {
  if (auto memory = out_of_memory(words)) return memory;
  if (words.find("CUDA") == std::string::npos) return std::nullopt;
  for (const Failure& failure : kFailures) {
    if (words.find(failure.phrase) == std::string::npos) continue;
    return Error(Blame::machine, text(failure.what, ": ", words), failure.fix);
  }
  return std::nullopt;
}

}  // namespace lockstep::ranks
