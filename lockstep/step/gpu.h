// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "plugins/cuda/cuda_plugin.h"

namespace lockstep::step {

// The GPU that this process works on, through the CUDA plug-in (plugins/cuda): what libtorch's allocator holds, what
// the driver says is free, when the work is done. Every function: machine error with CUDA's own words when it fails.
// REQUIRES: open_device opened `device`.
class Gpu {
 public:
  // Opens liblockstep_cuda.so beside this library and starts CUDA on the device, before any allocation. User error for
  // a device that is no GPU; machine error without the plug-in.
  explicit Gpu(at::Device device);

  void synchronize() const;
  lockstep_cuda_memory memory() const;
  void reset_peaks() const;

  struct Free {
    int64_t free = 0;
    int64_t total = 0;
  };
  Free free_memory() const;  // of the whole GPU, all processes

  // Records what the caching allocator does from now on; `mark` puts a mark of ours between the entries. What
  // `take_history` returns lives until the next call.
  void start_history() const;
  void stop_history() const;
  void mark(uint64_t tag) const;
  std::span<const lockstep_cuda_act> take_history() const;

  // What the GPU executes, each piece with its own start and end on the GPU; `tag` and `untag` enclose the launches of
  // the calling thread. Taking waits for the GPU and ends the watch. Lives until the next call.
  void watch_kernels() const;
  void tag(uint64_t tag) const;
  void untag() const;
  std::span<const lockstep_cuda_kernel> take_kernels() const;

  const lockstep_cuda& plugin() const { return *plugin_; }
  at::Device device() const { return device_; }

 private:
  void check(int code, const char* call) const;

  at::Device device_;
  const lockstep_cuda* plugin_;
};

// The plug-in beside this library. Machine error when it is not there or of another version.
const lockstep_cuda& open_cuda_plugin();

}  // namespace lockstep::step
