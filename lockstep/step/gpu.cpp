// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/gpu.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::step {

const lockstep_cuda& open_cuda_plugin() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&open_cuda_plugin), &here);
  const auto file = std::filesystem::path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_cuda.so";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    throw base::Error(
        base::Blame::machine, base::text("cannot open the CUDA plug-in: ", dlerror()),
        "build with the wheels torch==2.11.0, nvidia-cuda-runtime and nvidia-cuda-cupti: `make deps build`");
  }
  using Entry = const lockstep_cuda* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, LOCKSTEP_CUDA_ENTRY));
  if (!entry || entry()->version != LOCKSTEP_CUDA_VERSION) {
    throw base::Error(base::Blame::machine,
                      base::text(file.string(), " is no CUDA plug-in of version ", LOCKSTEP_CUDA_VERSION),
                      "build plugins/cuda of this version again");
  }
  return *entry();
}

Gpu::Gpu(at::Device device) : device_(device), plugin_(nullptr) {
  if (!device.is_cuda()) {
    throw base::Error(base::Blame::user, base::text(device.str(), " is no GPU"), "--device cuda");
  }
  plugin_ = &open_cuda_plugin();
  at::globalContext().lazyInitDevice(at::kCUDA);  // makes the allocator's lists, allocates nothing
}

void Gpu::check(int code, const char* call) const {
  if (code == 0) return;
  throw base::Error(base::Blame::machine, base::text("CUDA ", call, ": ", plugin_->failure()),
                    "`lockstep doctor` says what this machine has; nvidia-smi says who else uses the GPU");
}

void Gpu::synchronize() const {
  check(plugin_->synchronize(), "synchronize");
}

lockstep_cuda_memory Gpu::memory() const {
  lockstep_cuda_memory out{};
  check(plugin_->memory(device_.index(), &out), "allocator statistics");
  return out;
}

void Gpu::reset_peaks() const {
  check(plugin_->reset_peaks(device_.index()), "allocator statistics");
}

Gpu::Free Gpu::free_memory() const {
  Free out;
  check(plugin_->memory_info(&out.free, &out.total), "memory information");
  return out;
}

void Gpu::start_history() const {
  check(plugin_->history_start(), "allocator history");
}

void Gpu::stop_history() const {
  check(plugin_->history_stop(), "allocator history");
}

void Gpu::mark(uint64_t tag) const {
  check(plugin_->history_mark(tag), "allocator history");
}

std::span<const lockstep_cuda_act> Gpu::take_history() const {
  const lockstep_cuda_act* acts = nullptr;
  int64_t count = 0;
  check(plugin_->history_take(&acts, &count), "allocator history");
  return {acts, static_cast<size_t>(count)};
}

void Gpu::watch_kernels() const {
  check(plugin_->kernels_start(), "kernel times");
}

void Gpu::tag(uint64_t tag) const {
  check(plugin_->kernels_push(tag), "kernel times");
}

void Gpu::untag() const {
  check(plugin_->kernels_pop(), "kernel times");
}

std::span<const lockstep_cuda_kernel> Gpu::take_kernels() const {
  const lockstep_cuda_kernel* kernels = nullptr;
  int64_t count = 0;
  check(plugin_->kernels_take(&kernels, &count), "kernel times");
  return {kernels, static_cast<size_t>(count)};
}

}  // namespace lockstep::step
