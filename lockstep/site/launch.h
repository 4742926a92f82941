// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::site {

// What the launcher (mpirun, mpiexec, srun) told this process through its environment.
struct Launch {
  bool has_company = false;  // it started more than one rank
  int64_t local_rank = 0;    // among those of this node
  int64_t local_size = 1;
  int64_t rank = 0;  // among all
  int64_t size = 1;
  std::string launcher = {};  // "Open MPI's mpirun", "Hydra's mpiexec", "srun"; empty: none
  bool has_pmi = false;       // by which the ranks' MPI finds the others

  bool operator==(const Launch&) const = default;
};

Launch read_launch();

// Words for Open MPI's mpirun, "-x NAME" each: started by ssh a rank on another node has of this environment only what
// is named so. Of what is set: PATH, LD_LIBRARY_PATH, PBS_JOBFS, NCCL_*, OMP_*, UCX_*, LOCKSTEP_*, and the names in
// LOCKSTEP_PASS
// ("A,B"). None where the user has named them to Open MPI himself (mca_base_env_list): it refuses both.
// Hydra's mpiexec and srun pass everything on by themselves.
constexpr const char* kPassVariable = "LOCKSTEP_PASS";
std::vector<std::string> pass_words();

// This machine's own name.
std::string host_name();
// The name of this machine, by which ranks know whether they share it: its own, and what Slurm calls it where one
// machine plays several nodes.
std::string node_name();

}  // namespace lockstep::site
