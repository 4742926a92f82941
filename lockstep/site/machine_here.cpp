// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/machine_here.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

spec::FileSystemKind kind_of(const std::string& type) {
  static const std::map<std::string, spec::FileSystemKind> kKinds{
      {"nfs", spec::FileSystemKind::nfs},       {"nfs4", spec::FileSystemKind::nfs},
      {"lustre", spec::FileSystemKind::lustre}, {"gpfs", spec::FileSystemKind::gpfs},
      {"beegfs", spec::FileSystemKind::beegfs}, {"fuse.s3fs", spec::FileSystemKind::object}};
  const auto found = kKinds.find(type);
  if (found != kKinds.end()) return found->second;
  return type.empty() || is_network(type) ? spec::FileSystemKind::unknown : spec::FileSystemKind::local;
}

// Down to whole GB (MB below 4 GB): a document for people to read, and no more than there is.
int64_t rounded(uint64_t bytes) {
  const uint64_t unit = bytes >= 4'000'000'000 ? 1'000'000'000 : 1'000'000;
  return static_cast<int64_t>(bytes / unit * unit);
}

void fill_gpus(const Probe& probe, const catalogue::Catalogue& catalogue, spec::Machine& machine) {
  if (probe.gpus.devices.empty()) return;
  const std::string& name = probe.gpus.devices.front().name;
  const auto count = static_cast<int64_t>(probe.gpus.devices.size());
  if (const catalogue::Gpu* row = catalogue.gpu_by_driver_name(name)) {
    machine.gpu = row->id;
    machine.gpus_per_node = count;
  } else {
    machine.notes =
        base::text(count, " x ", name, " is not in the catalogue: add a row, then set gpu and gpus_per_node");
  }
}

// On a login node the cluster is what counts, not this machine: its default partition or queue, as the scheduler
// describes it.
void fill_cluster(const Probe& probe, const catalogue::Catalogue& catalogue, spec::Machine& machine) {
  const auto found = std::find_if(probe.partitions.begin(), probe.partitions.end(),
                                  [](const Partition& partition) { return partition.is_default; });
  if (found == probe.partitions.end()) return;
  if (found->nodes == 0) {  // nobody says what they are like
    machine.scheduler.partition = found->name;
    machine.scheduler.walltime = static_cast<double>(found->limit_seconds.value_or(0));
    return;
  }
  machine.nodes = found->nodes;
  machine.cpu.clear();
  machine.sockets_per_node = 0;
  machine.cores_per_node = found->cpus;
  machine.memory_per_node = rounded(static_cast<uint64_t>(found->memory_mib) << 20);
  machine.gpu.clear();
  machine.gpus_per_node = 0;
  machine.scheduler.partition = found->name;
  machine.scheduler.walltime = static_cast<double>(found->limit_seconds.value_or(0));
  const bool slurm = probe.scheduler.name == SchedulerName::slurm;
  machine.notes = slurm ? "default partition as sinfo describes it; the CPU is not stated"
                        : "default queue as qstat and pbsnodes describe it; the CPU is not stated";
  if (found->gpus == 0) return;
  if (slurm) machine.scheduler.resources = spec::ResourceForm::gres;  // the form in which sinfo tells of them
  machine.scheduler.gpu_type = found->gpu_type;
  const auto known = std::find_if(catalogue.gpus.begin(), catalogue.gpus.end(),
                                  [&](const catalogue::Gpu& gpu) { return gpu.id == found->gpu_type; });
  if (known != catalogue.gpus.end()) {
    machine.gpu = known->id;
    machine.gpus_per_node = found->gpus;
  } else {
    machine.notes += base::text("; ", found->gpus, " GPUs a node that the site calls '", found->gpu_type,
                                "': set gpu and gpus_per_node");
  }
}

// One project is the one that is charged; of several the user must choose.
void fill_account(const Probe& probe, spec::Machine& machine) {
  if (probe.accounts.empty()) return;
  if (probe.accounts.size() == 1) {
    machine.scheduler.account = probe.accounts.front().name;
    machine.scheduler.qos = probe.accounts.front().default_qos;
    return;
  }
  std::vector<std::string> names;
  for (const auto& account : probe.accounts) names.push_back(account.name);
  machine.notes +=
      base::text(machine.notes.empty() ? "" : "; ", "set scheduler.account, one of ", base::join(names, ", "));
}

base::Json storage_json(const Storage& storage) {
  base::Json row = base::Json::object();
  row["role"] = storage.role;
  row["folder"] = storage.folder;
  row["type"] = storage.type;
  row["free_bytes"] = storage.free_bytes;
  row["total_bytes"] = storage.total_bytes;
  row["free_inodes"] = storage.free_inodes;
  row["writable"] = storage.writable;
  row["write_bytes_per_second"] = storage.write_rate ? base::Json(*storage.write_rate) : base::Json();
  row["read_bytes_per_second"] = storage.read_rate ? base::Json(*storage.read_rate) : base::Json();
  return row;
}

base::Json device_json(const GpuDevice& device) {
  base::Json row = base::Json::object();
  row["name"] = device.name;
  row["memory_bytes"] = device.memory_bytes;
  row["used_bytes"] = device.used_bytes;
  row["compute_capability"] = base::text(device.capability_major, ".", device.capability_minor);
  row["power_limit_w"] = device.power_limit_w;
  return row;
}

}  // namespace

spec::Machine describe_machine(const Probe& probe, const catalogue::Catalogue& catalogue, const std::string& date) {
  spec::Machine machine;
  machine.name = probe.software.host;
  machine.title = base::text(probe.software.host, ", ", probe.software.system);
  machine.nodes = std::max<int64_t>(1, probe.scheduler.nodes);
  const catalogue::Cpu* cpu = catalogue.cpu_by_model_name(probe.processor.model);
  machine.cpu = cpu ? cpu->id : probe.processor.model;
  machine.sockets_per_node = probe.processor.sockets;
  machine.cores_per_node = std::min(probe.processor.cores, probe.processor.usable);
  machine.memory_per_node = rounded(probe.memory.usable());
  fill_gpus(probe, catalogue, machine);
  if (!probe.storages.empty()) {
    const Storage& here = probe.storages.front();
    machine.file_system.kind = kind_of(here.type);
    machine.file_system.path = here.folder;
    machine.file_system.read_rate = std::round(here.read_rate.value_or(0) / 1e7) * 1e7;  // 10 MB/s
    machine.file_system.capacity = rounded(here.total_bytes);
  }
  if (probe.scheduler.name == SchedulerName::slurm) machine.scheduler.kind = spec::SchedulerKind::slurm;
  if (probe.scheduler.name == SchedulerName::pbs) machine.scheduler.kind = spec::SchedulerKind::pbs;
  machine.scheduler.partition = probe.scheduler.partition;
  if (probe.scheduler.login_node()) fill_cluster(probe, catalogue, machine);
  fill_account(probe, machine);
  machine.source = "lockstep doctor";
  machine.date = date;
  return machine;
}

base::Json facts_json(const Probe& probe) {
  base::Json facts = base::Json::object();
  facts["host"] = probe.software.host;
  facts["system"] = probe.software.system;
  facts["login_node"] = probe.scheduler.login_node();
  facts["in_allocation"] = probe.scheduler.in_allocation();
  facts["scheduler"] = name_of(probe.scheduler.name);
  facts["job_id"] = probe.scheduler.job_id;
  facts["accounts"] = base::Json::array();
  for (const auto& account : probe.accounts) {
    base::Json row = base::Json::object();
    row["account"] = account.name;
    row["qos"] = base::Json::array_of(account.qos);
    row["default_qos"] = account.default_qos;
    facts["accounts"].push_back(std::move(row));
  }
  facts["seconds_left"] = probe.seconds_left ? base::Json(probe.seconds_left->count()) : base::Json();
  facts["threads"] = probe.threads;
  facts["nice"] = probe.niceness;
  facts["cpu"] = probe.processor.model;
  facts["cores"] = probe.processor.cores;
  facts["usable_threads"] = probe.processor.usable;
  facts["vector_units"] = base::Json::array_of(probe.processor.vector_units);
  facts["numa_nodes"] = probe.processor.numa_nodes;
  facts["memory_bytes"] = probe.memory.usable();
  facts["driver"] = probe.gpus.driver;
  facts["gpus"] = base::Json::array();
  for (const auto& device : probe.gpus.devices) facts["gpus"].push_back(device_json(device));
  facts["mpi"] = probe.software.mpi_version;
  facts["container"] = probe.software.container;
  facts["storages"] = base::Json::array();
  for (const auto& storage : probe.storages) facts["storages"].push_back(storage_json(storage));
  return facts;
}

}  // namespace lockstep::site
