// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

int64_t number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? std::atoll(value) : 0;
}

// srun says so in every task it starts, whatever its --mpi. sbatch sets SLURM_NTASKS for the batch shell too: only a
// step's own number of tasks, or a PMI of its own, makes this process one of many.
int64_t slurm_tasks() {
  if (number_in("SLURM_STEP_NUM_TASKS") > 0) return number_in("SLURM_STEP_NUM_TASKS");
  return std::getenv("PMIX_RANK") || std::getenv("PMI_RANK") ? number_in("SLURM_NTASKS") : 0;
}

Launch world() {
  if (std::getenv("LOCKSTEP_RENDEZVOUS")) {  // ranks on GPUs that somebody started by hand
    return {.rank = number_in("LOCKSTEP_RANK"),
            .size = std::max<int64_t>(1, number_in("LOCKSTEP_SIZE")),
            .launcher = "LOCKSTEP_RENDEZVOUS"};
  }
  // Innermost first: an mpirun inside an srun step or a batch shell is the one that started us.
  if (const int64_t size = number_in("OMPI_COMM_WORLD_SIZE"); size > 0) {
    return {.rank = number_in("OMPI_COMM_WORLD_RANK"), .size = size, .launcher = "Open MPI's mpirun"};
  }
  if (const int64_t size = number_in("PMI_SIZE"); size > 0) {
    const bool hydra = number_in("SLURM_STEP_NUM_TASKS") != size;  // srun --mpi=pmi2 speaks PMI too
    return {.rank = number_in("PMI_RANK"), .size = size, .launcher = hydra ? "Hydra's mpiexec" : "srun"};
  }
  if (const int64_t size = slurm_tasks(); size > 0) {
    return {.rank = number_in("SLURM_PROCID"), .size = size, .launcher = "srun"};
  }
  return {};
}

// PMIX_RANK, PMI_RANK, PMI_FD, PMI_CONTROL_PORT, ...: each kind of PMI has its own.
bool any_pmi() {
  for (char** variable = environ; *variable; ++variable) {
    if (std::string_view(*variable).starts_with("PMI")) return true;
  }
  return false;
}

bool ranks_need(std::string_view name) {
  if (name == "PATH" || name == "LD_LIBRARY_PATH" || name == "PBS_JOBFS") return true;
  for (const std::string_view family : {"NCCL_", "OMP_", "UCX_", "LOCKSTEP_"}) {
    if (name.starts_with(family)) return true;
  }
  return false;
}

}  // namespace

Launch read_launch() {
  Launch launch = world();
  launch.has_pmi = any_pmi();
  launch.has_company = launch.size > 1;
  if (launch.launcher == "LOCKSTEP_RENDEZVOUS") {  // on one machine
    launch.local_rank = launch.rank;
    launch.local_size = launch.size;
  } else if (number_in("OMPI_COMM_WORLD_LOCAL_SIZE") > 0) {
    launch.local_rank = number_in("OMPI_COMM_WORLD_LOCAL_RANK");
    launch.local_size = number_in("OMPI_COMM_WORLD_LOCAL_SIZE");
  } else if (number_in("MPI_LOCALNRANKS") > 0) {
    launch.local_rank = number_in("MPI_LOCALRANKID");
    launch.local_size = number_in("MPI_LOCALNRANKS");
  } else if (launch.has_company) {
    // srun writes "4(x2),3"; the first number is right for all nodes but the last.
    launch.local_rank = number_in("SLURM_LOCALID");
    launch.local_size = std::max<int64_t>(1, number_in("SLURM_STEP_TASKS_PER_NODE"));
  }
  return launch;
}

std::vector<std::string> pass_words() {
  if (std::getenv("OMPI_MCA_mca_base_env_list")) return {};
  const char* told = std::getenv(kPassVariable);
  const std::vector<std::string> further = base::split(told ? told : "", ',');
  std::vector<std::string> names;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view line = *variable;
    const std::string name(line.substr(0, line.find('=')));
    if (ranks_need(name) || std::count(further.begin(), further.end(), name) > 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> words;
  for (const auto& name : names) words.insert(words.end(), {"-x", name});
  return words;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string node_name() {
  const char* slurm = std::getenv("SLURMD_NODENAME");
  return slurm ? host_name() + "/" + slurm : host_name();
}

}  // namespace lockstep::site
