// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::site {

struct GpuDevice {
  std::string name;           // as the driver spells it: "NVIDIA H200"
  uint64_t memory_bytes = 0;  // whole
  uint64_t used_bytes = 0;    // by everybody, now
  int capability_major = 0;   // compute capability
  int capability_minor = 0;
  double power_limit_w = 0;
  std::string uuid = {};  // "GPU-8f1c..."
  bool is_cut = false;    // into MIG instances: what it draws is not what one of them does

  bool operator==(const GpuDevice&) const = default;
};

// What the NVIDIA driver says, asked through NVML (libnvidia-ml.so.1, opened at run time: no CUDA context, no memory).
struct GpuReport {
  std::vector<GpuDevice> devices;
  std::string driver;  // "580.95.05"; empty: no driver
  int cuda_major = 0;  // newest CUDA that the driver runs
  int cuda_minor = 0;
  std::string absent;         // why there are no devices, in words; empty: there are
  int64_t nvidia_on_bus = 0;  // NVIDIA display or compute devices on the PCI bus, driven or not
  int64_t amd_on_bus = 0;     // AMD compute devices (Instinct), likewise
};

GpuReport read_gpus();

// The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them.
std::vector<std::string> usable_gpus();

// What tells CUDA how to count the GPUs.
struct CudaVariables {
  std::optional<std::string> visible = {};  // CUDA_VISIBLE_DEVICES; nothing: all
  std::string order = {};                   // CUDA_DEVICE_ORDER
};
CudaVariables read_cuda_variables();

// Which of the driver's devices is CUDA's `ordinal`-th. Nothing where that cannot be told: an instance of MIG, a name
// that fits several, a number where they differ and CUDA may count the fastest first.
std::optional<size_t> find_cuda_gpu(const std::vector<GpuDevice>& devices, const CudaVariables& variables,
                                    int64_t ordinal);
// That of this process; nothing likewise.
std::optional<GpuDevice> read_cuda_gpu(int64_t ordinal);

class Nvml;  // the library, opened

// What one GPU draws. Nothing where the driver does not say, or which one it is cannot be told (find_cuda_gpu).
class PowerMeter {
 public:
  explicit PowerMeter(int64_t ordinal);  // as CUDA counts
  ~PowerMeter();
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;

  std::optional<double> watts() const;   // now
  std::optional<double> joules() const;  // since the driver was loaded: take differences

 private:
  std::unique_ptr<Nvml> nvml_;
  void* handle_ = nullptr;  // of the GPU; null: none
};

}  // namespace lockstep::site
