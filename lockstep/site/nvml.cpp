// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
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
  char uuid[96] = "";
  if (nvml.call("nvmlDeviceGetUUID", handle, &uuid[0], static_cast<unsigned>(sizeof uuid))) device.uuid = uuid;
  unsigned cut = 0;
  unsigned pending = 0;
  if (nvml.call("nvmlDeviceGetMigMode", handle, &cut, &pending)) device.is_cut = cut != 0;
  return device;
}

std::vector<GpuDevice> read_devices(const Nvml& nvml) {
  unsigned count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  std::vector<GpuDevice> all;
  for (unsigned i = 0; i < count; ++i) all.push_back(read_device(nvml, i));
  return all;
}

// CUDA's list ends with the first that is none. "NoDevFiles" is what Slurm gives a job without a GPU.
std::vector<std::string> names_in(const std::string& visible) {
  std::vector<std::string> all;
  for (const auto& word : base::split(visible, ',')) {
    const std::string name(base::trim(word));
    if (name.empty() || name.front() == '-' || name == "NoDevFiles") break;
    all.push_back(name);
  }
  return all;
}

// CUDA counts as the driver does where it is told so or all are alike.
std::optional<size_t> find_by_number(const std::vector<GpuDevice>& devices, const std::string& order,
                                     std::string_view number) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), index);
  if (error != std::errc() || end != number.end() || index >= devices.size()) return std::nullopt;
  const bool cut = std::any_of(devices.begin(), devices.end(), [](const GpuDevice& one) { return one.is_cut; });
  const bool alike = std::all_of(devices.begin(), devices.end(),
                                 [&](const GpuDevice& one) { return one.name == devices.front().name; });
  return !cut && (alike || order == "PCI_BUS_ID") ? std::optional(index) : std::nullopt;
}

// By the first letters of the UUID, of which there must be one.
std::optional<size_t> find_by_uuid(const std::vector<GpuDevice>& devices, const std::string& name) {
  std::optional<size_t> found;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].uuid.starts_with(name)) continue;
    if (found || devices[i].is_cut) return std::nullopt;
    found = i;
  }
  return found;
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
  report.devices = read_devices(nvml);
  if (report.devices.empty()) report.absent = "the NVIDIA driver is here and sees no GPU";
  return report;
}

CudaVariables read_cuda_variables() {
  CudaVariables variables;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) variables.visible = visible;
  if (const char* order = std::getenv("CUDA_DEVICE_ORDER")) variables.order = order;
  return variables;
}

std::optional<size_t> find_cuda_gpu(const std::vector<GpuDevice>& devices, const CudaVariables& variables,
                                    int64_t ordinal) {
  if (ordinal < 0) return std::nullopt;
  if (!variables.visible) return find_by_number(devices, variables.order, base::text(ordinal));
  const auto names = names_in(*variables.visible);
  if (static_cast<size_t>(ordinal) >= names.size()) return std::nullopt;
  const std::string& name = names[static_cast<size_t>(ordinal)];
  return name.starts_with("GPU-") ? find_by_uuid(devices, name) : find_by_number(devices, variables.order, name);
}

std::optional<GpuDevice> read_cuda_gpu(int64_t ordinal) {
  const auto devices = read_gpus().devices;
  const auto index = find_cuda_gpu(devices, read_cuda_variables(), ordinal);
  return index ? std::optional(devices[*index]) : std::nullopt;
}

std::vector<std::string> usable_gpus() {
  if (const auto visible = read_cuda_variables().visible) return names_in(*visible);
  std::vector<std::string> all;
  const size_t gpus = read_gpus().devices.size();
  for (size_t i = 0; i < gpus; ++i) all.push_back(base::text(i));
  return all;
}

PowerMeter::PowerMeter(int64_t ordinal) : nvml_(std::make_unique<Nvml>()) {
  if (!nvml_->works()) return;
  const auto index = find_cuda_gpu(read_devices(*nvml_), read_cuda_variables(), ordinal);
  if (index) nvml_->call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(*index), &handle_);
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
