// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/rank_error.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <string>

#include "lockstep/base/text.h"
#include "lockstep/ranks/gpu_failure.h"

namespace lockstep::ranks {
namespace {

using base::Blame;
using base::Error;

// libtorch's text goes on with its own stack.
std::string first_line(const std::string& words) {
  return words.substr(0, words.find('\n'));
}

bool says(const std::string& words, const char* phrase) {
  return words.find(phrase) != std::string::npos;
}

}  // namespace

Error rank_error(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return *ours;
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string what = first_line(torch ? torch->what_without_backtrace() : error.what());
  if (auto gpu = gpu_failure(what)) return *gpu;
  // The host's allocator has no type of its own for it.
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) ||
                      dynamic_cast<const c10::OutOfMemoryError*>(&error) || says(what, "not enough memory") ||
                      says(what, "can't allocate memory") || says(what, "out of memory");
  if (memory) {
    return Error(Blame::machine, base::text("out of memory", torch ? ": " + what : ""),
                 "a smaller training.micro_batch or data.image_size, or a node with more memory");
  }
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return Error(Blame::machine, what, "check permissions and free space: ls -ld, df -h");
  }
  return Error(Blame::bug, what, "please report this with the command that showed it");
}

}  // namespace lockstep::ranks
