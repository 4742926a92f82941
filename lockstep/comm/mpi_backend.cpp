// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/mpi_backend.h"

#include <ATen/ops/empty.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/future_work.h"
#include "lockstep/comm/parts.h"
#include "lockstep/site/mpi.h"

namespace lockstep::comm {

using base::Blame;
using base::Error;
using base::text;

using site::check_mpi;

// Polls the collectives under way, oldest first, and announces their ends.
class MpiBackend::Poller {
 public:
  struct Pending {
    lockstep_mpi_request* request;  // null once it is done
    lockstep_mpi_request* arrival;  // of a collective with many bytes: null once all ranks are in it
    bool moves = false;             // all are in it: bytes are on their way
    const char* call;
    int64_t ticket;  // of the call's record
    c10::intrusive_ptr<FutureWork> work;
    std::vector<at::Tensor> kept;  // MPI reads and writes them meanwhile
    std::function<void()> after;
  };

  Poller(const lockstep_mpi& mpi, CallRecord& calls)
      : mpi_(mpi), calls_(calls), thread_([this](const std::stop_token& stop) { loop(stop); }) {}

  void add(Pending pending) {
    {
      const std::lock_guard lock(mutex_);
      pending_.push_back(std::move(pending));
    }
    arrived_.notify_one();
  }

 private:
  void loop(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "mpi-poller");
    prctl(PR_SET_TIMERSLACK, 1000UL);  // 1 us; the default of 50 would be most of a short sleep
    std::deque<Pending> mine;
    auto last_news = std::chrono::steady_clock::now();
    while (true) {
      bool news = false;
      {
        std::unique_lock lock(mutex_);
        if (mine.empty()) arrived_.wait(lock, stop, [&] { return !pending_.empty(); });
        if (mine.empty() && pending_.empty()) return;  // asked to stop
        news = !pending_.empty();
        for (auto& pending : pending_) mine.push_back(std::move(pending));
        pending_.clear();
      }
      news = poll(mine) || news;
      const auto now = std::chrono::steady_clock::now();
      if (news || std::any_of(mine.begin(), mine.end(), [](const auto& each) { return each.moves; })) last_news = now;
      back_off(now - last_news);
    }
  }

  // Short collectives end within microseconds: yield first. Then sleep, for a share of the time that nothing has
  // happened: what a collective can lose to a sleep stays near 2 % of it, an idle rank looks 500 times a second (under
  // 1 % of a core), and on an oversubscribed node the poller leaves the core to the backward pass that it waits for.
  // Not while many bytes are on their way: MPI moves them while it is asked. Where memory cannot be read across
  // processes (containers) or between nodes, 26 MB go in hundreds of pieces; sleeping between them took 28 times as
  // long.
  static void back_off(std::chrono::steady_clock::duration quiet) {
    using std::chrono::microseconds;
    if (quiet < microseconds(50)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(
          std::clamp<std::chrono::steady_clock::duration>(quiet / 50, microseconds(20), microseconds(2000)));
    }
  }

  bool poll(std::deque<Pending>& mine) {
    bool any = false;
    for (auto it = mine.begin(); it != mine.end();) {
      int code = 0;
      if (it->arrival && ended(it->arrival, code)) it->moves = it->request != nullptr;
      if (it->request && ended(it->request, code)) {
        it->moves = false;
        any = true;
        announce(*it, code);
      }
      it = it->request || it->arrival ? std::next(it) : mine.erase(it);
    }
    return any;
  }

  // Whether it is over, well or not: then it is gone.
  bool ended(lockstep_mpi_request*& request, int& code) const {
    int32_t done = 0;
    code = mpi_.test(request, &done);
    if (!done && code == 0) return false;
    request = nullptr;
    return true;
  }

  void announce(Pending& pending, int code) {
    calls_.end(pending.ticket, code == 0);
    try {
      check_mpi(mpi_, code, pending.call);
      if (pending.after) pending.after();
      pending.work->complete();
    } catch (...) {
      pending.work->fail(std::current_exception());
    }
  }

  const lockstep_mpi& mpi_;
  CallRecord& calls_;
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<Pending> pending_;
  std::jthread thread_;  // last: it uses all of the above
};

namespace {

lockstep_mpi_type mpi_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return LOCKSTEP_MPI_F32;
    case at::kDouble:
      return LOCKSTEP_MPI_F64;
    case at::kInt:
      return LOCKSTEP_MPI_I32;
    case at::kLong:
      return LOCKSTEP_MPI_I64;
    case at::kBFloat16:
      return LOCKSTEP_MPI_BF16;
    default:
      throw Error(Blame::bug, text("MPI cannot sum ", c10::toString(type)));
  }
}

int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

constexpr int64_t kManyBytes = 256 << 10;  // fewer are there before a poller would sleep

// With the same number of bytes on every rank, so that all of them, or none, tell when they have come.
bool joins_all(c10d::OpType type) {
  return type == c10d::OpType::ALLREDUCE || type == c10d::OpType::BROADCAST || type == c10d::OpType::ALLGATHER ||
         type == c10d::OpType::_ALLGATHER_BASE || type == c10d::OpType::_REDUCE_SCATTER_BASE;
}

void check_tensor(const at::Tensor& tensor) {
  base::ensure(tensor.device().is_cpu() && tensor.is_contiguous(), "MPI is given contiguous CPU tensors");
}

}  // namespace

MpiBackend::MpiBackend(const lockstep_mpi& mpi, std::shared_ptr<CallRecord> calls)
    : c10d::Backend(mpi.rank(), mpi.size()),
      mpi_(mpi),
      calls_(std::move(calls)),
      poller_(std::make_unique<Poller>(mpi, *calls_)) {}

MpiBackend::~MpiBackend() = default;

template <class Start>
c10::intrusive_ptr<c10d::Work> MpiBackend::begin(c10d::OpType type, const char* call, std::vector<at::Tensor> results,
                                                 std::vector<at::Tensor> kept, Start start,
                                                 std::function<void()> after) {
  for (const at::Tensor& tensor : kept) check_tensor(tensor);
  const bool between_two = type == c10d::OpType::SEND || type == c10d::OpType::RECV;
  const int64_t ticket = calls_->begin(call, between_two ? CallRecord::Among::two : CallRecord::Among::all);
  int64_t bytes = 0;
  for (const at::Tensor& tensor : kept) bytes += bytes_of(tensor);
  lockstep_mpi_request *request = nullptr, *arrival = nullptr;
  int code = start(&request);
  if (code == 0 && bytes >= kManyBytes && joins_all(type)) code = mpi_.arrival(&arrival);
  if (code != 0) calls_->end(ticket, /*good=*/false);
  check_mpi(mpi_, code, call);
  auto work = c10::make_intrusive<FutureWork>(type, std::move(results));
  poller_->add({.request = request,
                .arrival = arrival,
                .call = call,
                .ticket = ticket,
                .work = work,
                .kept = std::move(kept),
                .after = std::move(after)});
  return work;
}

c10::intrusive_ptr<c10d::Work> MpiBackend::allreduce(std::vector<at::Tensor>& tensors,
                                                     const c10d::AllreduceOptions& options) {
  base::ensure(tensors.size() == 1 && options.reduceOp == c10d::ReduceOp::SUM, "one tensor, summed");
  const at::Tensor& tensor = tensors[0];
  return begin(c10d::OpType::ALLREDUCE, "all-reduce", tensors, tensors, [&](lockstep_mpi_request** request) {
    return mpi_.all_reduce_sum(tensor.data_ptr(), tensor.numel(), mpi_type(tensor.scalar_type()), request);
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::broadcast(std::vector<at::Tensor>& tensors,
                                                     const c10d::BroadcastOptions& options) {
  base::ensure(tensors.size() == 1, "one tensor is broadcast at a time");
  const at::Tensor& tensor = tensors[0];
  return begin(c10d::OpType::BROADCAST, "broadcast", tensors, tensors, [&](lockstep_mpi_request** request) {
    return mpi_.broadcast(tensor.data_ptr(), bytes_of(tensor), static_cast<int32_t>(options.rootRank), request);
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::allgather(std::vector<std::vector<at::Tensor>>& out,
                                                     std::vector<at::Tensor>& in, const c10d::AllgatherOptions&) {
  base::ensure(in.size() == 1 && out.size() == 1, "one tensor is gathered at a time");
  const at::Tensor source = in[0];
  const int64_t each = source.numel();
  const at::Tensor flat = at::empty({size_ * each}, source.options());
  return begin(
      c10d::OpType::ALLGATHER, "all-gather", out[0], {source, flat},
      [&](lockstep_mpi_request** request) {
        return mpi_.all_gather(source.data_ptr(), flat.data_ptr(), bytes_of(source), request);
      },
      [flat, targets = out[0], source, each] {
        for (size_t i = 0; i < targets.size(); ++i) {
          targets[i].copy_(flat.narrow(0, static_cast<int64_t>(i) * each, each).view(source.sizes()));
        }
      });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::_allgather_base(at::Tensor& out, at::Tensor& in,
                                                           const c10d::AllgatherOptions&) {
  base::ensure(out.numel() == in.numel() * size_, "an all-gather leaves every rank's part");
  return begin(c10d::OpType::_ALLGATHER_BASE, "all-gather", {out}, {in, out}, [&](lockstep_mpi_request** request) {
    return mpi_.all_gather(in.data_ptr(), out.data_ptr(), bytes_of(in), request);
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                                const c10d::ReduceScatterOptions& options) {
  base::ensure(options.reduceOp == c10d::ReduceOp::SUM, "parts are summed");
  base::ensure(in.numel() == out.numel() * size_, "a reduce-scatter takes one part per rank");
  return begin(
      c10d::OpType::_REDUCE_SCATTER_BASE, "reduce-scatter", {out}, {in, out}, [&](lockstep_mpi_request** request) {
        return mpi_.reduce_scatter_sum(in.data_ptr(), out.data_ptr(), out.numel(), mpi_type(in.scalar_type()), request);
      });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& rows_in,
                                                         std::vector<int64_t>& rows_out, const c10d::AllToAllOptions&) {
  const auto coming = part_bytes(out, rows_in, size_);
  const auto going = part_bytes(in, rows_out, size_);
  return begin(c10d::OpType::ALLTOALL_BASE, "all-to-all", {out}, {in, out}, [&](lockstep_mpi_request** request) {
    return mpi_.all_to_all(in.data_ptr(), going.data(), out.data_ptr(), coming.data(), request);
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::send(std::vector<at::Tensor>& tensors, int peer, int tag) {
  base::ensure(tensors.size() == 1, "one tensor is sent at a time");
  return begin(c10d::OpType::SEND, "send", tensors, tensors, [&](lockstep_mpi_request** request) {
    return mpi_.send(tensors[0].data_ptr(), bytes_of(tensors[0]), peer, tag, request);
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::recv(std::vector<at::Tensor>& tensors, int peer, int tag) {
  base::ensure(tensors.size() == 1, "one tensor is received at a time");
  return begin(c10d::OpType::RECV, "receive", tensors, tensors, [&](lockstep_mpi_request** request) {
    return mpi_.receive(tensors[0].data_ptr(), bytes_of(tensors[0]), peer, tag, request);
  });
}

c10::intrusive_ptr<c10d::Work> MpiBackend::barrier(const c10d::BarrierOptions&) {
  return begin(c10d::OpType::BARRIER, "barrier", {}, {},
               [&](lockstep_mpi_request** request) { return mpi_.barrier(request); });
}

}  // namespace lockstep::comm
