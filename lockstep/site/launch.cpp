// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/launch.h"

#include <algorithm>
#include <cstdlib>

namespace lockstep::site {
namespace {

int64_t number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? std::atoll(value) : 0;
}

bool has_company() {
  if (number_in("OMPI_COMM_WORLD_SIZE") > 0) return number_in("OMPI_COMM_WORLD_SIZE") > 1;
  if (number_in("PMI_SIZE") > 0) return number_in("PMI_SIZE") > 1;
  // sbatch sets SLURM_NTASKS for the batch shell too: only with a PMI of its own is this process one of many.
  return number_in("SLURM_NTASKS") > 1 && (std::getenv("PMIX_RANK") || std::getenv("PMI_RANK"));
}

}  // namespace

Launch read_launch() {
  const bool company = has_company();
  if (number_in("OMPI_COMM_WORLD_LOCAL_SIZE") > 0) {
    return {company, number_in("OMPI_COMM_WORLD_LOCAL_RANK"), number_in("OMPI_COMM_WORLD_LOCAL_SIZE")};
  }
  if (number_in("MPI_LOCALNRANKS") > 0) return {company, number_in("MPI_LOCALRANKID"), number_in("MPI_LOCALNRANKS")};
  if (!company) return {};
  // srun writes "4(x2),3"; the first number is right for all nodes but the last.
  return {true, number_in("SLURM_LOCALID"), std::max<int64_t>(1, number_in("SLURM_STEP_TASKS_PER_NODE"))};
}

}  // namespace lockstep::site
