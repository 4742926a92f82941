// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/from_blob.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/backed_group.h"
#include "lockstep/comm/future_work.h"
#include "lockstep/comm/parts.h"

namespace lockstep::comm {
namespace {

using base::Blame;
using base::Error;
using base::text;

// What one rank brings to a collective. `in` and `out` may be the same tensor.
struct Share {
  c10d::OpType type = c10d::OpType::BARRIER;
  at::Tensor in = {};
  at::Tensor out = {};
  int64_t root = 0;
  std::vector<int64_t> going = {};   // bytes to each rank, all-to-all
  std::vector<int64_t> coming = {};  // bytes from each rank
  c10::intrusive_ptr<FutureWork> work = {};
};

char* bytes(const at::Tensor& tensor) {
  return static_cast<char*>(tensor.data_ptr());
}

void copy(const char* from, char* to, int64_t count) {
  if (count > 0 && from != to) std::memcpy(to, from, static_cast<size_t>(count));
}

// Elements `first`.. of a tensor, past autograd: a collective changes values without telling it.
at::Tensor values(const at::Tensor& tensor, int64_t first, int64_t count) {
  return at::from_blob(bytes(tensor) + first * static_cast<int64_t>(tensor.element_size()), {count},
                       at::TensorOptions(tensor.scalar_type()));
}

at::Tensor sum(const std::vector<Share>& shares, int64_t first, int64_t count) {
  at::Tensor total = values(shares[0].in, first, count).clone();
  for (size_t r = 1; r < shares.size(); ++r) total.add_(values(shares[r].in, first, count));
  return total;
}

std::string words(const Share& share) {
  return text(c10d::opTypeToString(share.type), " of ", share.in.defined() ? share.in.numel() : 0, " elements");
}

// All shares are there: whoever came last does the work of all.
void perform(const std::vector<Share>& shares) {
  for (size_t r = 1; r < shares.size(); ++r) {
    const bool alike =
        shares[r].type == shares[0].type && (shares[r].type == c10d::OpType::ALLTOALL_BASE || !shares[r].in.defined() ||
                                             shares[r].in.nbytes() == shares[0].in.nbytes());
    if (alike) continue;
    throw Error(Blame::bug,
                text("ranks disagree: rank 0 is in ", words(shares[0]), ", rank ", r, " in ", words(shares[r])));
  }
  const at::Tensor& first = shares[0].in;
  switch (shares[0].type) {
    case c10d::OpType::ALLREDUCE: {
      const at::Tensor total = sum(shares, 0, first.numel());
      for (const Share& share : shares) copy_bytes(total, share.out);
      return;
    }
    case c10d::OpType::_REDUCE_SCATTER_BASE:
      for (size_t r = 0; r < shares.size(); ++r) {
        const int64_t each = shares[r].out.numel();
        copy_bytes(sum(shares, static_cast<int64_t>(r) * each, each), shares[r].out);
      }
      return;
    case c10d::OpType::BROADCAST:
      for (const Share& share : shares) copy_bytes(shares[static_cast<size_t>(share.root)].in, share.out);
      return;
    case c10d::OpType::_ALLGATHER_BASE:
      for (const Share& to : shares) {
        const auto each = static_cast<int64_t>(first.nbytes());
        for (size_t r = 0; r < shares.size(); ++r) {
          copy(bytes(shares[r].in), bytes(to.out) + static_cast<int64_t>(r) * each, each);
        }
      }
      return;
    case c10d::OpType::ALLTOALL_BASE: {
      std::vector<int64_t> sent(shares.size(), 0);
      for (size_t to = 0; to < shares.size(); ++to) {
        int64_t position = 0;
        for (size_t from = 0; from < shares.size(); ++from) {
          const int64_t count = shares[from].going[to];
          base::ensure(count == shares[to].coming[from], "both sides of an all-to-all know the length");
          copy(bytes(shares[from].in) + sent[from], bytes(shares[to].out) + position, count);
          sent[from] += count;
          position += count;
        }
      }
      return;
    }
    default:
      return;  // a barrier is over when all have come
  }
}

// Where the threads meet. The n-th collective of each rank belongs together.
class Meeting {
 public:
  explicit Meeting(int64_t ranks) : next_(ranks, 0), gone_(ranks, false) {}

  void join(int64_t rank, Share share) {
    std::vector<Share> all;
    {
      const std::lock_guard lock(mutex_);
      const int64_t number = next_[rank]++;
      Round& round = rounds_[number];
      round.shares.resize(next_.size());
      round.shares[rank] = std::move(share);
      if (++round.arrived == static_cast<int64_t>(next_.size())) {
        for (auto& each : round.shares) all.push_back(std::move(*each));
        rounds_.erase(number);
      } else {
        fail_if_hopeless(round);
        return;
      }
    }
    finish(all);
  }

  void send(int64_t from, int64_t to, int tag, const at::Tensor& tensor) {
    Share receiver;
    {
      const std::lock_guard lock(mutex_);
      Line& line = lines_[{from, to, tag}];
      if (line.waiting.empty()) {
        line.letters.push_back(tensor.clone());
        return;
      }
      receiver = std::move(line.waiting.front());
      line.waiting.erase(line.waiting.begin());
    }
    deliver(tensor, receiver);
  }

  void receive(int64_t from, int64_t to, int tag, Share receiver) {
    at::Tensor letter;
    {
      const std::lock_guard lock(mutex_);
      Line& line = lines_[{from, to, tag}];
      if (line.letters.empty()) {
        if (gone_[from]) return fail(receiver, from);
        line.waiting.push_back(std::move(receiver));
        return;
      }
      letter = std::move(line.letters.front());
      line.letters.erase(line.letters.begin());
    }
    deliver(letter, receiver);
  }

  void leave(int64_t rank) {
    const std::lock_guard lock(mutex_);
    gone_[rank] = true;
    for (auto& [number, round] : rounds_) fail_if_hopeless(round);
    for (auto& [ends, line] : lines_) {
      if (std::get<0>(ends) != rank) continue;
      for (const Share& receiver : line.waiting) fail(receiver, rank);
      line.waiting.clear();
    }
  }

 private:
  struct Round {
    std::vector<std::optional<Share>> shares;
    int64_t arrived = 0;
  };
  struct Line {  // from one rank to another, of one tag
    std::vector<at::Tensor> letters;
    std::vector<Share> waiting;
  };

  void fail_if_hopeless(Round& round) {
    for (size_t r = 0; r < round.shares.size(); ++r) {
      if (round.shares[r] || !gone_[r]) continue;
      for (auto& share : round.shares) {
        if (share && !share->work->isCompleted()) fail(*share, static_cast<int64_t>(r));
      }
    }
  }

  static void fail(const Share& share, int64_t rank) {
    share.work->fail(std::make_exception_ptr(
        Error(Blame::machine, text(c10d::opTypeToString(share.type), " cannot end: rank ", rank, " is gone"),
              text("see the last lines of rank ", rank))));
  }

  static void deliver(const at::Tensor& tensor, const Share& receiver) {
    try {
      copy_bytes(tensor, receiver.out);
      receiver.work->complete();
    } catch (...) {
      receiver.work->fail(std::current_exception());
    }
  }

  static void finish(const std::vector<Share>& all) {
    std::exception_ptr error;
    try {
      perform(all);
    } catch (...) {
      error = std::current_exception();
    }
    for (const Share& share : all) error ? share.work->fail(error) : share.work->complete();
  }

  std::mutex mutex_;
  std::vector<int64_t> next_;  // collective of each rank
  std::vector<bool> gone_;
  std::map<int64_t, Round> rounds_;
  std::map<std::tuple<int64_t, int64_t, int>, Line> lines_;
};

class ThreadBackend : public c10d::Backend {
 public:
  ThreadBackend(std::shared_ptr<Meeting> meeting, int rank, int size)
      : c10d::Backend(rank, size), meeting_(std::move(meeting)) {}
  ~ThreadBackend() override { meeting_->leave(rank_); }
  const std::string getBackendName() const override { return "lockstep_threads"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return join({.type = c10d::OpType::ALLREDUCE, .in = tensors[0], .out = tensors[0]});
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return join({.type = c10d::OpType::BROADCAST, .in = tensors[0], .out = tensors[0], .root = options.rootRank});
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& out, std::vector<at::Tensor>& in,
                                           const c10d::AllgatherOptions& options) override {
    at::Tensor flat = in[0].new_empty({size_ * in[0].numel()});
    const auto gathered = _allgather_base(flat, in[0], options);
    auto work = c10::make_intrusive<FutureWork>(c10d::OpType::ALLGATHER, out[0]);
    gathered->getFuture()->addCallback([work, flat, targets = out[0]](c10::ivalue::Future& done) {
      if (done.hasError()) return work->fail(done.exception_ptr());
      int64_t position = 0;
      for (const at::Tensor& target : targets) {
        copy(bytes(flat) + position, bytes(target), static_cast<int64_t>(target.nbytes()));
        position += static_cast<int64_t>(target.nbytes());
      }
      work->complete();
    });
    return work;
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                 const c10d::AllgatherOptions&) override {
    base::ensure(out.numel() == in.numel() * size_, "an all-gather leaves every rank's part");
    return join({.type = c10d::OpType::_ALLGATHER_BASE, .in = in, .out = out});
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                      const c10d::ReduceScatterOptions&) override {
    base::ensure(in.numel() == out.numel() * size_, "a reduce-scatter takes one part per rank");
    return join({.type = c10d::OpType::_REDUCE_SCATTER_BASE, .in = in, .out = out});
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& rows_in,
                                               std::vector<int64_t>& rows_out, const c10d::AllToAllOptions&) override {
    return join({.type = c10d::OpType::ALLTOALL_BASE,
                 .in = in,
                 .out = out,
                 .going = part_bytes(in, rows_out, size_),
                 .coming = part_bytes(out, rows_in, size_)});
  }
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int peer, int tag) override {
    auto work = c10::make_intrusive<FutureWork>(c10d::OpType::SEND, tensors);
    meeting_->send(rank_, peer, tag, tensors[0]);
    work->complete();
    return work;
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int peer, int tag) override {
    auto work = c10::make_intrusive<FutureWork>(c10d::OpType::RECV, tensors);
    meeting_->receive(peer, rank_, tag, {.type = c10d::OpType::RECV, .out = tensors[0], .work = work});
    return work;
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override { return join({}); }

 private:
  c10::intrusive_ptr<c10d::Work> join(Share share) {
    base::ensure(!share.in.defined() || (share.in.device().is_cpu() && share.in.is_contiguous()),
                 "thread ranks exchange contiguous CPU tensors");
    share.work = c10::make_intrusive<FutureWork>(
        share.type, share.out.defined() ? std::vector<at::Tensor>{share.out} : std::vector<at::Tensor>{});
    auto work = share.work;
    meeting_->join(rank_, std::move(share));
    return work;
  }

  std::shared_ptr<Meeting> meeting_;
};

class ThreadGroup : public BackedGroup {
 public:
  using BackedGroup::BackedGroup;
  // libtorch's own way to the backend keeps a tensor in a static variable, which threads would free twice.
  void barrier() override { wait(group()->getBackend(c10::DeviceType::CPU)->barrier(c10d::BarrierOptions())); }
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
};

}  // namespace

std::vector<std::unique_ptr<Group>> thread_groups(int64_t ranks) {
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::unique_ptr<Group>> groups;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    groups.push_back(std::make_unique<ThreadGroup>(
        c10::make_intrusive<ThreadBackend>(meeting, static_cast<int>(rank), static_cast<int>(ranks))));
  }
  return groups;
}

void run_thread_ranks(int64_t ranks, const std::function<void(Group&)>& body) {
  auto groups = thread_groups(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (auto& group : groups) {
      threads.emplace_back([&body, &mutex, &first, mine = std::move(group)]() mutable {
        pthread_setname_np(pthread_self(), text("rank-", mine->rank()).c_str());
        try {
          body(*mine);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        mine.reset();  // those who wait for this rank hear that it is gone
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace lockstep::comm
