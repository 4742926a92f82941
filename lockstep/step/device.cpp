// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <typeinfo>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::step {
namespace {

using base::Blame;
using base::Error;
using base::text;

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
