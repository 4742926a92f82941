// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/nccl_plugin.h"

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace {

thread_local std::string last_failure;

c10d::Backend* make(c10d::Store* store, int32_t rank, int32_t size, double timeout_seconds) {
  try {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
    auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store),
                                                               rank, size, std::move(options));
    return backend.release();
  } catch (const std::exception& error) {
    last_failure = error.what();
    return nullptr;
  }
}

const char* failure() {
  return last_failure.c_str();
}

const char* library() {
  static const std::string words = "NCCL " + c10d::getNcclVersion();
  return words.c_str();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const lockstep_nccl* lockstep_nccl_plugin(void) {
  static const lockstep_nccl table = {LOCKSTEP_NCCL_VERSION, make, failure, library};
  return &table;
}
