// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <typeinfo>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/nvml.h"

namespace lockstep::step {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int64_t kFirstWithoutVolta = 13000;  // CUDA 13
constexpr int kTuring = 75;
constexpr uint64_t kIdleBytes = uint64_t{1} << 30;  // the driver's own and a display's stay below

void ensure_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    throw Error(Blame::machine, "--device cuda: no NVIDIA driver on this machine (libcuda.so.1 is not there)",
                "run it on a node with a GPU, or with --device cpu; `lockstep doctor` says what this machine has");
  }
}

void open_libtorch_cuda() {
  Dl_info torch{};
  dladdr(reinterpret_cast<const void*>(&at::globalContext), &torch);
  const auto file = std::filesystem::path(torch.dli_fname ? torch.dli_fname : "").parent_path() / "libtorch_cuda.so";
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    throw Error(Blame::machine, text("--device cuda: ", dlerror()),
                "install the full wheel with its CUDA packages: pip install torch==2.11.0");
  }
}

// The CUDA kernels of the operators of room kernel register themselves. A build without nvcc has none: the networks
// that need them say so.
void open_own_kernels() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&open_device), &here);
  const auto file =
      std::filesystem::path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_kernels.so";
  if (!std::filesystem::exists(file) || dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return;
  throw Error(Blame::machine, text("--device cuda: ", dlerror()), "build it for this libtorch: `make deps build`");
}

}  // namespace

void check_gpu(const site::GpuReport& report, size_t index, int64_t runtime) {
  const int64_t driver = int64_t{report.cuda_major} * 1000 + int64_t{report.cuda_minor} * 10;
  if (driver > 0 && driver / 1000 < runtime / 1000) {
    throw Error(Blame::machine,
                text("--device cuda: the driver ", report.driver, " runs CUDA ", report.cuda_major, ".",
                     report.cuda_minor, " at most, this libtorch was built with CUDA ", runtime / 1000),
                "update the driver, or take a libtorch for an older CUDA (LOCKSTEP_TORCH)");
  }
  const auto capability_of = [](const site::GpuDevice& gpu) {
    return gpu.capability_major * 10 + gpu.capability_minor;
  };
  if (index >= report.devices.size()) return;
  const site::GpuDevice& gpu = report.devices[index];
  const int capability = capability_of(gpu);
  // CUDA counts from the fastest GPU on, the driver along the bus: of different ones nobody knows which is meant.
  const bool alike = std::all_of(report.devices.begin(), report.devices.end(),
                                 [&](const site::GpuDevice& other) { return capability_of(other) == capability; });
  if (!alike) return;
  if (runtime >= kFirstWithoutVolta && capability > 0 && capability < kTuring) {
    throw Error(
        Blame::machine,
        text("--device cuda: ", gpu.name, " has compute capability ", gpu.capability_major, ".", gpu.capability_minor,
             ", and CUDA ", runtime / 1000, " drives 7.5 and newer"),
        "another GPU, --device cpu, or a libtorch for CUDA 12 (LOCKSTEP_TORCH); `lockstep plan` plans for it anyway");
  }
}

std::string gpu_company(const site::GpuReport& report, size_t index) {
  if (index >= report.devices.size() || report.devices[index].used_bytes < kIdleBytes) return {};
  const site::GpuDevice& gpu = report.devices[index];
  return text("GPU ", index, " (", gpu.name, "): ", base::format_bytes(static_cast<double>(gpu.used_bytes)), " of ",
              base::format_bytes(static_cast<double>(gpu.memory_bytes)),
              " are in use by others: memory and times are shared with them (nvidia-smi names them)");
}

void ensure_torch_sees_cuda() {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  if (typeid(hooks) == typeid(at::CUDAHooksInterface)) {
    throw Error(Blame::bug, "torch was used before its device was decided: it now believes that there is no CUDA",
                "call step::open_device before any other torch call");
  }
}

at::Device open_device(const std::string& name, int64_t local_rank) {
  if (name == "cpu") return at::kCPU;
  if (name != "cuda") {
    throw Error(Blame::user, text("--device ", name, ": no such device"), "known: cpu, cuda");
  }
  ensure_driver();
  open_libtorch_cuda();
  ensure_torch_sees_cuda();
  open_own_kernels();
  // With CUDA_VISIBLE_DEVICES the driver counts the GPUs another way than this process does.
  const bool all_visible = std::getenv("CUDA_VISIBLE_DEVICES") == nullptr;
  check_gpu(site::read_gpus(), all_visible ? static_cast<size_t>(local_rank) : SIZE_MAX,
            at::detail::getCUDAHooks().versionCUDART());
  const auto count = at::detail::getCUDAHooks().deviceCount();
  // srun --gpus-per-task=1: every rank sees its own GPU alone, as the first.
  if (count == 1 && std::getenv("CUDA_VISIBLE_DEVICES")) return {at::kCUDA, 0};
  if (local_rank >= count) {
    throw Error(Blame::user, text("--device cuda: rank ", local_rank, " of this node, but ", count, " GPUs"),
                "use as many ranks a node as it has GPUs; `lockstep doctor` lists them");
  }
  return {at::kCUDA, static_cast<c10::DeviceIndex>(local_rank)};
}

}  // namespace lockstep::step
