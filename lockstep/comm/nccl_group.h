// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "lockstep/base/file.h"
#include "lockstep/comm/group.h"

namespace lockstep::comm {

// How ranks on GPUs find each other: a file in a folder that only its owner can enter. NCCL then talks over its own
// sockets (NCCL_SOCKET_IFNAME says on which interface); nothing of ours listens.
struct Rendezvous {
  base::Path folder;  // 0700, of this user, seen by all ranks; machine error otherwise
  int64_t rank = 0;
  int64_t size = 1;
  double timeout_seconds = 600;
};

// Ranks with a GPU each, through libtorch's ProcessGroupNCCL; no MPI. CUDA tensors stay on the GPU and follow its
// stream; CPU tensors are carried through it, and are there when the call returns. REQUIRES: open_device opened
// `device`. Machine error without liblockstep_nccl.so.
std::unique_ptr<Group> nccl_group(at::Device device, const Rendezvous& meeting);

// The group of ranks on GPUs that this process was launched into. They meet in a folder with a random name in `run`,
// which MPI spreads where the launcher speaks it, or in the one that LOCKSTEP_RENDEZVOUS names (with LOCKSTEP_RANK and
// LOCKSTEP_SIZE), or, under an srun without PMI, in one named after the job's step. One rank: a group of one.
std::unique_ptr<Group> join_cuda_group(at::Device device, const base::Path& run);

// Makes a folder that only this user can enter, or checks that an existing one is such; machine error otherwise.
void make_private_folder(const base::Path& folder);

}  // namespace lockstep::comm
