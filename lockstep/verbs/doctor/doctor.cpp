// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/doctor/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::verbs::doctor {
namespace {

using base::format_bytes;
using base::text;
using site::Probe;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int kDriverForCuda13 = 580;  // CUDA 13.0 release notes: driver 580 or newer

// A figure beside its threshold: good when it holds, otherwise `bad` with the command that fixes it.
Finding checked(bool good, Mark bad, std::string what, std::string fix) {
  return good ? Finding{Mark::ok, std::move(what), ""} : Finding{bad, std::move(what), std::move(fix)};
}

std::string counted(int64_t number, const std::string& thing) {
  return text(number, " ", thing, number == 1 ? "" : "s");
}

bool is_kepler(const site::GpuDevice& device) {
  return device.capability_major == 3;
}

// How the driver of libtorch's CUDA 13 wheel treats a GPU.
Finding check_device(const site::GpuDevice& device, int64_t count, const catalogue::Catalogue& catalogue) {
  const catalogue::Gpu* row = catalogue.gpu_by_driver_name(device.name);
  std::string what = text(count, " x ", device.name, ", ", format_bytes(static_cast<double>(device.memory_bytes)),
                          ", compute capability ", device.capability_major, ".", device.capability_minor,
                          row ? text(", catalogue id ", row->id) : std::string(", not in the catalogue"));
  const int capability = device.capability_major * 10 + device.capability_minor;
  if (is_kepler(device)) {
    return {Mark::wrong, what + ": no CUDA since 11.8 drives it. Lockstep plans for it, and trains on the CPU here",
            "lockstep train JOB --device cpu    # or plan for another machine"};
  }
  if (capability < 75) {
    return {Mark::wrong, what + ": CUDA 13 no longer drives it; a CUDA 12.6 build of libtorch does",
            "make build CMAKE_FLAGS=-DLOCKSTEP_TORCH=/path/to/libtorch-cu126    # Pascal and Volta"};
  }
  if (device.used_bytes * 10 > device.memory_bytes) {
    return {Mark::warn, text(what, "; ", format_bytes(static_cast<double>(device.used_bytes)), " of it in use already"),
            "nvidia-smi    # who uses the GPU"};
  }
  return {row ? Mark::ok : Mark::note, what, ""};
}

FindingGroup check_gpus(const Probe& probe, const catalogue::Catalogue& catalogue) {
  FindingGroup group{"GPUs", {}};
  std::map<std::string, int64_t> counts;
  for (const auto& device : probe.gpus.devices) ++counts[device.name];
  for (const auto& [name, count] : counts) {
    const auto first = std::find_if(probe.gpus.devices.begin(), probe.gpus.devices.end(),
                                    [&name = name](const auto& device) { return device.name == name; });
    group.findings.push_back(check_device(*first, count, catalogue));
  }
  if (!probe.gpus.driver.empty()) {
    const bool recent = std::atoi(probe.gpus.driver.c_str()) >= kDriverForCuda13;
    group.findings.push_back(checked(recent, Mark::wrong,
                                     text("driver ", probe.gpus.driver, ", CUDA up to ", probe.gpus.cuda_major, ".",
                                          probe.gpus.cuda_minor, recent ? "" : "; libtorch's CUDA 13 needs driver 580"),
                                     "install NVIDIA driver 580 or newer (or ask the site for it)"));
  }
  if (probe.gpus.devices.empty()) {
    const bool gpu = probe.gpus.nvidia_on_bus > 0;
    group.findings.push_back(
        gpu ? Finding{Mark::wrong,
                      text(counted(probe.gpus.nvidia_on_bus, "NVIDIA GPU"), " on the bus, but ", probe.gpus.absent),
                      "apt-get install nvidia-driver    # then reboot"}
            : Finding{Mark::note, text("none: ", probe.gpus.absent), ""});
  }
  if (probe.gpus.amd_on_bus > 0) {
    group.findings.push_back(
        {Mark::note, counted(probe.gpus.amd_on_bus, "AMD accelerator") + ": planned for, not driven", ""});
  }
  return group;
}

std::string partition_text(const site::Partition& partition, const char* kind) {
  const std::string gpus =
      partition.gpus > 0 ? text(", ", partition.gpus, " x ", partition.gpu_type.empty() ? "GPU" : partition.gpu_type)
                         : "";
  return text(kind, " ", partition.name, partition.is_default ? " (default)" : "", ": ",
              counted(partition.nodes, "node"), " of ", counted(partition.cpus, "CPU"), ", ",
              format_bytes(static_cast<double>(partition.memory_mib) * (1 << 20)), gpus, ", ",
              partition.limit_seconds
                  ? "jobs up to " + base::format_duration(static_cast<double>(*partition.limit_seconds))
                  : std::string("no time limit"),
              partition.enabled ? "" : ", takes no jobs", partition.started ? "" : ", stopped");
}

FindingGroup check_place(const Probe& probe) {
  const site::Scheduler& scheduler = probe.scheduler;
  FindingGroup group{"place", {}};
  if (scheduler.login_node()) {
    group.findings.push_back(
        {Mark::note,
         text("login node of a ", site::name_of(scheduler.name), " cluster: shared with others. Lockstep uses ",
              probe.threads, " threads at nice ", probe.niceness, " here, probes no disk, and does not train"),
         ""});
    group.findings.push_back(
        {Mark::note,
         "look at a compute node: " + site::submit_line(scheduler.name, "doctor", "", std::chrono::minutes(5)), ""});
    for (const auto& partition : probe.partitions) {
      const char* kind = scheduler.name == site::SchedulerName::pbs ? "queue" : "partition";
      group.findings.push_back({Mark::note, partition_text(partition, kind), ""});
    }
    for (const auto& account : probe.accounts) {
      const std::string qos = account.qos.empty() ? "" : text(", qos ", base::join(account.qos, ", "));
      group.findings.push_back({Mark::note, text("account ", account.name, qos), ""});
    }
  } else if (scheduler.in_allocation()) {
    const std::string left =
        probe.seconds_left
            ? text(", ", base::format_duration(static_cast<double>(probe.seconds_left->count())), " left")
            : std::string(", no end known");
    group.findings.push_back(
        {Mark::ok,
         text("inside an allocation: ", site::name_of(scheduler.name), " job ", scheduler.job_id,
              scheduler.partition.empty() ? "" : " in ", scheduler.partition,
              scheduler.nodes > 0 ? ", " + counted(scheduler.nodes, "node") : std::string(),
              scheduler.tasks > 0 ? ", " + counted(scheduler.tasks, "task") : std::string(), left,
              scheduler.restarts > 0 ? ", restarted " + counted(scheduler.restarts, "time") : std::string()),
         ""});
  } else {
    group.findings.push_back({Mark::ok, "no scheduler: the machine is yours, jobs run at once", ""});
  }
  if (!probe.software.container.empty()) {
    group.findings.push_back({Mark::note, "inside a container (" + probe.software.container + ")", ""});
  }
  return group;
}

FindingGroup check_processor(const Probe& probe, const catalogue::Catalogue& catalogue) {
  const site::Processor& cpu = probe.processor;
  const catalogue::Cpu* row = catalogue.cpu_by_model_name(cpu.model);
  FindingGroup group{"processor", {}};
  group.findings.push_back({Mark::ok,
                            text(cpu.model.empty() ? "unnamed" : cpu.model, row ? ", catalogue id " + row->id : "",
                                 "; ", counted(cpu.sockets, "socket"), ", ", counted(cpu.cores, "core"), ", ",
                                 counted(cpu.threads, "thread"), ", ", counted(cpu.numa_nodes, "NUMA node")),
                            ""});
  if (cpu.usable < cpu.threads) {
    group.findings.push_back(
        {Mark::note, text("this process may use ", cpu.usable, " of them (affinity or cgroup quota)"), ""});
  }
  group.findings.push_back(checked(cpu.has("avx2"), Mark::warn,
                                   cpu.vector_units.empty() ? "no AVX2: training on this CPU is several times slower"
                                                            : "vector units " + base::join(cpu.vector_units, ", "),
                                   "train on a machine with AVX2 or a GPU"));
  const bool fast_bf16 = cpu.has("avx512_bf16") || cpu.has("amx_bf16");
  group.findings.push_back({Mark::note,
                            fast_bf16 ? "bf16 runs in hardware: \"precision\": \"bf16\" pays"
                                      : "no bf16 in hardware: \"precision\": \"bf16\" saves memory, not time",
                            ""});
  return group;
}

FindingGroup check_memory(const Probe& probe) {
  const site::Memory& memory = probe.memory;
  FindingGroup group{"memory", {}};
  const bool limited = memory.group_limit && *memory.group_limit < memory.total;
  group.findings.push_back(checked(memory.usable() >= 4 * kGiB, Mark::warn,
                                   text(format_bytes(static_cast<double>(memory.usable())), " usable",
                                        limited ? text(" (limit of the job or container; the machine has ",
                                                       format_bytes(static_cast<double>(memory.total)), ")")
                                                : std::string(),
                                        ", ", format_bytes(static_cast<double>(memory.available)), " free now"),
                                   "ask the scheduler for more: --mem=16G"));
  if (!memory.shared) {
    group.findings.push_back({Mark::warn, "no /dev/shm: ranks of one node exchange through slower ways",
                              "mount -t tmpfs -o size=2G tmpfs /dev/shm"});
  } else {
    group.findings.push_back(checked(memory.shared_free >= kGiB, Mark::warn,
                                     text("/dev/shm ", format_bytes(static_cast<double>(*memory.shared)), ", ",
                                          format_bytes(static_cast<double>(memory.shared_free)), " free"),
                                     "mount -o remount,size=2G /dev/shm    # docker: --shm-size=2g"));
  }
  return group;
}

FindingGroup check_software(const Probe& probe) {
  const site::Software& software = probe.software;
  FindingGroup group{"software", {}};
  group.findings.push_back(
      checked(software.mpirun.has_value(), Mark::warn,
              software.mpirun ? text("MPI: ", software.mpi_version, " (", *software.mpirun, ")")
                              : std::string("no MPI: training runs on one process only"),
              "apt-get install openmpi-bin libopenmpi-dev    # on a cluster: module load openmpi"));
  group.findings.push_back(checked(software.mpi_plugin.has_value(), Mark::warn,
                                   software.mpi_plugin ? "our MPI plug-in: " + *software.mpi_plugin
                                                       : "our MPI plug-in is not built: --ranks needs it",
                                   "make build    # with mpicxx on PATH (libopenmpi-dev)"));
  group.findings.push_back(checked(software.torch_rooms.has_value(), Mark::wrong,
                                   software.torch_rooms ? "training rooms: " + *software.torch_rooms
                                                        : "built without libtorch: train, eval and predict are missing",
                                   "make deps build"));
  const bool needs_nccl = probe.gpus.devices.size() > 1;
  group.findings.push_back(
      {software.nccl ? Mark::ok
       : needs_nccl  ? Mark::warn
                     : Mark::note,
       software.nccl ? "NCCL: " + *software.nccl : "no NCCL found (needed for more than one GPU)",
       software.nccl || !needs_nccl ? "" : "pip install nvidia-nccl-cu13    # or the full torch wheel"});
  return group;
}

Finding check_storage(const site::Storage& storage, bool login_node) {
  std::string what = text(storage.role, ": ", storage.folder, " on ", storage.type.empty() ? "?" : storage.type, ", ",
                          format_bytes(static_cast<double>(storage.free_bytes)), " of ",
                          format_bytes(static_cast<double>(storage.total_bytes)), " free");
  if (storage.total_inodes > 0)
    what += text(", ", base::format_short_count(static_cast<double>(storage.free_inodes)), " inodes free");
  if (storage.write_rate) what += ", write " + base::format_rate(*storage.write_rate);
  if (storage.read_rate) what += ", read " + base::format_rate(*storage.read_rate);
  const bool measures = storage.role.substr(0, 4) == "here";
  if (measures && login_node) what += " (rates not measured on a login node)";
  if (!storage.writable) return {Mark::wrong, what + "; not writable", "cd to a folder you may write to"};
  if (storage.free_bytes < 2 * kGiB)
    return {Mark::wrong, what + ": nearly full", "du -xh --max-depth=1 " + storage.folder + " | sort -h"};
  const bool few_inodes = storage.total_inodes > 0 && storage.free_inodes < 100000;
  if (few_inodes) {
    return {Mark::warn, what + ": few inodes for a folder of images",
            "pack the dataset into shards, or use another file system"};
  }
  return {Mark::ok, what, ""};
}

FindingGroup check_storages(const Probe& probe) {
  FindingGroup group{"disks", {}};
  for (const auto& storage : probe.storages) {
    group.findings.push_back(check_storage(storage, probe.scheduler.login_node()));
  }
  for (const auto& line : probe.quota) {
    const bool exceeded = line.find('*') != std::string::npos;  // how quota marks it
    group.findings.push_back({exceeded ? Mark::wrong : Mark::note, "quota: " + line,
                              exceeded ? "du -xh --max-depth=1 ~ | sort -h    # what to remove" : ""});
  }
  return group;
}

std::string limit_text(const site::Limit& limit, bool bytes) {
  if (!limit.soft) return "unlimited";
  return bytes ? format_bytes(static_cast<double>(*limit.soft)) : std::to_string(*limit.soft);
}

FindingGroup check_limits(const Probe& probe) {
  constexpr uint64_t kFiles = 4096;
  const site::Limits& limits = probe.limits;
  FindingGroup group{"limits", {}};
  const uint64_t best = limits.open_files.can_allow(65536) ? 65536 : *limits.open_files.hard;
  const bool own_means = limits.open_files.can_allow(kFiles);
  group.findings.push_back(checked(
      limits.open_files.allows(kFiles), Mark::warn,
      text("open files ", limit_text(limits.open_files, false),
           limits.open_files.allows(kFiles) ? "" : ": many ranks and readers need more"),
      own_means ? text("ulimit -n ", best) : std::string("ask the site to raise the hard limit of open files")));
  const bool gpu_or_cluster = !probe.gpus.devices.empty() || probe.scheduler.name != site::SchedulerName::none;
  group.findings.push_back(checked(!gpu_or_cluster || !limits.locked_bytes.soft || *limits.locked_bytes.soft >= kGiB,
                                   Mark::warn, "locked memory " + limit_text(limits.locked_bytes, true),
                                   "ulimit -l unlimited    # InfiniBand and pinned buffers need it"));
  group.findings.push_back(checked(limits.stack_bytes.allows(uint64_t{1} << 20), Mark::warn,
                                   "stack " + limit_text(limits.stack_bytes, true), "ulimit -s 8192"));
  group.findings.push_back(checked(!limits.address_bytes.soft, Mark::warn,
                                   "address space " + limit_text(limits.address_bytes, true),
                                   "ulimit -v unlimited    # CUDA reserves far more than it uses"));
  return group;
}

std::vector<std::string> verdict_of(const Probe& probe) {
  std::vector<std::string> lines;
  const auto& devices = probe.gpus.devices;
  if (std::any_of(devices.begin(), devices.end(), is_kepler)) {
    lines.emplace_back(
        "The Tesla K40/K80 here cannot be driven by any CUDA since 11.8: Lockstep plans for them, it "
        "cannot train on them.");
  }
  const auto driven = std::count_if(devices.begin(), devices.end(), [](const auto& device) {
    return device.capability_major * 10 + device.capability_minor >= 75;
  });
  if (probe.scheduler.login_node()) {
    lines.emplace_back("This is a login node: plan and submit here, train on compute nodes.");
  } else if (driven > 0) {
    lines.push_back(text("Training runs on ", counted(driven, "GPU"), " here (--device cuda)."));
  } else {
    lines.push_back(text("No GPU to train on: training runs on ", counted(probe.threads, "CPU thread"), "."));
  }
  return lines;
}

}  // namespace

DoctorReport examine(const Probe& probe, const catalogue::Catalogue& catalogue) {
  DoctorReport report;
  report.headline = text(probe.software.host, ": ", probe.software.system, ", kernel ", probe.software.kernel);
  report.verdict = verdict_of(probe);
  report.groups = {check_place(probe),    check_processor(probe, catalogue),
                   check_memory(probe),   check_gpus(probe, catalogue),
                   check_software(probe), check_storages(probe),
                   check_limits(probe)};
  return report;
}

}  // namespace lockstep::verbs::doctor
