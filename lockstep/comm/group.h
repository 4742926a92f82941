// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

namespace lockstep::comm {

// The ranks of one run. The plain functions block; `group` is what libtorch's reducer takes, and has the same
// collectives as futures: allreduce, broadcast, allgather, _allgather_base, _reduce_scatter_base, alltoall_base, send,
// recv, barrier.
// One Group per process; make it before any other thread uses MPI. Collectives are started in the same order on every
// rank. Tensors: CPU, contiguous; float, double, int32, int64 or bfloat16 for sums (bfloat16: each addition is done in
// float and its sum rounded to nearest even), anything for the rest.
class Group {
 public:
  virtual ~Group() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  virtual c10::intrusive_ptr<c10d::ProcessGroup> group() = 0;

  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
  virtual void broadcast(at::Tensor& tensor, int64_t root) = 0;
  virtual std::vector<at::Tensor> all_gather(const at::Tensor& tensor) = 0;  // one per rank, same shape everywhere
  virtual void all_gather_into(const at::Tensor& in, at::Tensor& out) = 0;   // out: everybody's `in`, in rank order
  virtual void reduce_scatter_sum(const at::Tensor& in,
                                  at::Tensor& out) = 0;                // in: size() parts like out; rank r: r-th
  virtual void all_to_all(const at::Tensor& in, at::Tensor& out) = 0;  // size() equal parts; r-th goes to rank r
  // Between two ranks, which pair by tag, in order. REQUIRES: both sides know the size; tag in 0..32767.
  virtual void send(const at::Tensor& tensor, int64_t peer, int tag = 0) = 0;
  virtual void receive(at::Tensor& tensor, int64_t peer, int tag = 0) = 0;
  virtual void barrier() = 0;
  // Ends every rank at once with that exit code, from one that cannot go on; never returns.
  [[noreturn]] virtual void abort(int exit_code) = 0;
  virtual double seconds_waited() const = 0;  // in the blocking calls above
};

// The group this process was launched into: MPI when an MPI launcher's environment is seen (opens the plug-in),
// else a group of one rank that needs no MPI.
std::unique_ptr<Group> join_group();

// One rank, no MPI: every collective is the identity.
std::unique_ptr<Group> single_group();

// N ranks in one process, for tests: each group is used by one thread of its own. Sums are added in rank order. A
// group that is destroyed while others wait for it gives them a machine error instead of a hang.
std::vector<std::unique_ptr<Group>> thread_groups(int64_t ranks);
// `body` once per rank, each in a thread; the first error of any of them is thrown here.
void run_thread_ranks(int64_t ranks, const std::function<void(Group&)>& body);

// Whether an MPI launcher (mpirun, srun with PMI) started this process with company, by its environment.
bool launched_by_mpi();

// This process among those of its node, as its launcher says; {0, 1} when alone.
struct Locality {
  int64_t rank = 0;
  int64_t size = 1;
};
Locality locality();

// A short text known to `root` only, made known to all; and every rank's own text, in rank order.
std::string broadcast_text(Group& group, std::string text, int64_t root = 0);
std::vector<std::string> gather_texts(Group& group, const std::string& text);

}  // namespace lockstep::comm
