// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/nvml.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "lockstep/base/text.h"
#include "lockstep/site/kernel_file.h"

namespace lockstep::site {
namespace {

// The few calls of NVML that we make, with its binary interface (nvml.h of the CUDA toolkit).
struct NvmlMemory {
  unsigned long long total, free, used;  // NOLINT(google-runtime-int): the library's own types
};
using NvmlDevice = void*;

}  // namespace

class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = function<int()>("nvmlInit_v2");
    code_ = init ? init() : -1;
  }
  ~Nvml() {
    if (code_ == 0) function<int()>("nvmlShutdown")();
    if (library_) ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool found() const { return library_ != nullptr; }
  bool works() const { return code_ == 0; }
  std::string failure() const {
    const auto explain = function<const char*(int)>("nvmlErrorString");
    return explain ? explain(code_) : "it is not an NVML library";
  }
  // Calls `name`; false when the library lacks it or it fails: old drivers know less.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto entry = function<int(Arguments...)>(name);
    return entry && entry(arguments...) == 0;
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    return library_ ? reinterpret_cast<Signature*>(::dlsym(library_, name)) : nullptr;
  }

  void* library_;
  int code_ = -1;
};

namespace {

GpuDevice read_device(const Nvml& nvml, unsigned index) {
  GpuDevice device;
  NvmlDevice handle = nullptr;
  if (!nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &handle)) return device;
  char name[96] = "";
  if (nvml.call("nvmlDeviceGetName", handle, &name[0], static_cast<unsigned>(sizeof name))) device.name = name;
  NvmlMemory memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", handle, &memory)) {
    device.memory_bytes = memory.total;
    device.used_bytes = memory.used;
  }
  nvml.call("nvmlDeviceGetCudaComputeCapability", handle, &device.capability_major, &device.capability_minor);
  unsigned milliwatts = 0;
  if (nvml.call("nvmlDeviceGetPowerManagementLimit", handle, &milliwatts)) device.power_limit_w = milliwatts / 1000.0;
  return device;
}

// Counts by PCI class: 0x03.... display and 3D controllers; 0x12.... processing accelerators.
void count_bus(GpuReport& report) {
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", missing)) {
    const std::string kind = kernel_text(entry.path() / "class").substr(0, 4);
    const std::string vendor(base::trim(kernel_text(entry.path() / "vendor")));
    if (vendor == "0x10de" && kind == "0x03") ++report.nvidia_on_bus;
    if (vendor == "0x1002" && kind == "0x12") ++report.amd_on_bus;
  }
}

}  // namespace

GpuReport read_gpus() {
  GpuReport report;
  count_bus(report);
  const Nvml nvml;
  if (!nvml.works()) {
    report.absent = nvml.found() ? base::text("the NVIDIA driver does not answer: ", nvml.failure())
                                 : std::string("no NVIDIA driver (libnvidia-ml.so.1 is not here)");
    return report;
  }
  char version[96] = "";
  if (nvml.call("nvmlSystemGetDriverVersion", &version[0], static_cast<unsigned>(sizeof version))) {
    report.driver = version;
  }
  int cuda = 0;
  if (nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda)) {
    report.cuda_major = cuda / 1000;
    report.cuda_minor = cuda % 1000 / 10;
  }
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) report.devices.push_back(read_device(nvml, i));
  if (count == 0) report.absent = "the NVIDIA driver is here and sees no GPU";
  return report;
}

std::vector<std::string> usable_gpus() {
  std::vector<std::string> all;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    for (const auto& word : base::split(visible, ',')) {
      const std::string name(base::trim(word));
      // CUDA's list ends with the first that is none. "NoDevFiles" is what Slurm gives a job without a GPU.
      if (name.empty() || name.front() == '-' || name == "NoDevFiles") break;
      all.push_back(name);
    }
    return all;
  }
  const size_t gpus = read_gpus().devices.size();
  for (size_t i = 0; i < gpus; ++i) all.push_back(base::text(i));
  return all;
}

PowerMeter::PowerMeter(int64_t index) : nvml_(std::make_unique<Nvml>()) {
  if (nvml_->works()) nvml_->call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(index), &handle_);
}

PowerMeter::~PowerMeter() = default;

std::optional<double> PowerMeter::watts() const {
  unsigned milliwatts = 0;
  const bool known = handle_ && nvml_->call("nvmlDeviceGetPowerUsage", handle_, &milliwatts);
  return known ? std::optional(milliwatts / 1000.0) : std::nullopt;
}

std::optional<double> PowerMeter::joules() const {
  unsigned long long millijoules = 0;  // NOLINT(google-runtime-int): the library's own type
  const bool known = handle_ && nvml_->call("nvmlDeviceGetTotalEnergyConsumption", handle_, &millijoules);
  return known ? std::optional(static_cast<double>(millijoules) / 1000.0) : std::nullopt;
}

}  // namespace lockstep::site
