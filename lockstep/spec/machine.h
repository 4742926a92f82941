// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/choice.h"

namespace lockstep::spec {

struct Section;  // fields.h

// The machine document: where to train. Plain values; machine.cpp declares each field once. 0 and "" mean "not
// stated" unless said otherwise. Whether the catalogue knows a GPU or CPU is for the catalogue room to say.

LOCKSTEP_CHOICE(SchedulerKind, none, slurm, pbs)
LOCKSTEP_CHOICE(FileSystemKind, unknown, local, nfs, lustre, gpfs, beegfs, object)
LOCKSTEP_CHOICE(ResourceForm, standard, gres, gpus_per_node, select, nodes, job_wide)
LOCKSTEP_CHOICE(Launcher, mpirun, srun)
LOCKSTEP_CHOICE(RemoteShell, standard, ssh, pbs_tmrsh)
LOCKSTEP_CHOICE(SubmitFrom, job, login)

struct Link {
  std::string name;    // "NVLink 3", "PCIe 3.0 x16", "InfiniBand HDR", "Aries"
  double rate = 0;     // bytes per second in one direction, per GPU inside a node, per node between nodes
  double latency = 0;  // seconds

  bool operator==(const Link&) const = default;
};

struct Links {
  Link intra;  // between the GPUs of a node
  Link inter;  // between nodes

  bool operator==(const Links&) const = default;
};

struct FileSystem {
  FileSystemKind kind = FileSystemKind::unknown;
  std::string path;      // where it is mounted
  double read_rate = 0;  // bytes per second that one node reads
  int64_t capacity = 0;  // bytes

  bool operator==(const FileSystem&) const = default;
};

struct Scheduler {
  SchedulerKind kind = SchedulerKind::none;
  std::string partition;  // partition (Slurm) or queue (PBS)
  std::string account;
  std::string project;  // PBS's -P, which some sites want beside the account or in its place
  std::string qos;
  std::string constraint;  // features a node must have
  std::string reservation;
  double walltime = 0;                              // seconds one job may run; 0: no limit known
  int64_t max_nodes = 0;                            // of one job
  bool exclusive_nodes = true;                      // a job gets whole nodes
  ResourceForm resources = ResourceForm::standard;  // how GPUs are asked for
  std::string gpu_type;                             // as the site calls the GPU in a request
  int64_t memory = 0;                               // bytes that a job asks for on each node; 0: by the plan
  Launcher launcher = Launcher::mpirun;
  RemoteShell remote_shell = RemoteShell::standard;  // how mpirun reaches the other nodes of a PBS job
  std::vector<std::string> modules;                  // shell lines before the program: "module load openmpi/4.1"
  std::vector<std::string> environment;              // "NAME=VALUE", exported as they stand
  std::string container;           // words in front of the program on each rank: "apptainer exec --nv x.sif"
  double signal_lead = 120;        // seconds before its end that Slurm warns a job; 0: never
  std::vector<std::string> extra;  // further directives, verbatim: "--mail-type=END"

  bool operator==(const Scheduler&) const = default;
};

struct Prices {
  std::string currency = "USD";
  double gpu_hour = 0;         // renting one GPU
  double node_hour = 0;        // renting one node
  double node = 0;             // buying one node
  double kwh = 0;              // electricity
  std::string unit;            // what a grant of this centre is counted in: "CU", "GPU-hour"
  double node_hour_units = 0;  // units that one node costs in an hour

  bool operator==(const Prices&) const = default;
};

struct Machine {
  std::string name;
  std::string title;  // as people call it
  int64_t nodes = 1;  // 0: not stated
  int64_t gpus_per_node = 0;
  std::string gpu;  // catalogue id: "v100-32"
  std::string cpu;  // catalogue id or the maker's name
  int64_t sockets_per_node = 0;
  int64_t cores_per_node = 0;
  int64_t memory_per_node = 0;  // bytes
  Links links;
  FileSystem file_system;
  Scheduler scheduler;
  SubmitFrom submit_from = SubmitFrom::job;  // who queues the next job of a chain
  Prices prices;
  std::string source;  // where the figures come from
  std::string date;    // of the source, "2026-11-15"
  std::string notes;

  bool operator==(const Machine&) const = default;
};

// As load_job, for machine documents.
Machine load_machine(const base::Path& path, const std::vector<std::string>& sets = {});
Machine parse_machine(const base::Json& document, const std::vector<std::string>& sets = {});

base::Json to_json(const Machine& machine);                         // every field
base::Json changed_json(const Machine& machine);                    // only what differs from the default
void save_machine(const base::Path& path, const Machine& machine);  // atomically; only what differs

const Section& machine_section();  // the table of its fields

}  // namespace lockstep::spec
