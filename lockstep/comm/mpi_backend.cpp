// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/mpi_backend.h"

#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/future_work.h"

namespace lockstep::comm {

using base::Blame;
using base::Error;
using base::text;

const lockstep_mpi& open_mpi_plugin() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&open_mpi_plugin), &here);
  const auto file = std::filesystem::path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_mpi.so";
  // Global: Open MPI's own components look for their symbols in what is loaded.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    throw Error(Blame::machine, text("cannot open the MPI plug-in: ", dlerror()),
                text("load the site's MPI module, then: mpicxx -O2 -shared -fPIC plugins/mpi/mpi_plugin.cpp -o ",
                     file.string()));
  }
  using Entry = const lockstep_mpi* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, LOCKSTEP_MPI_ENTRY));
  if (!entry || entry()->version != LOCKSTEP_MPI_VERSION) {
    throw Error(Blame::machine, text(file.string(), " is no MPI plug-in of version ", LOCKSTEP_MPI_VERSION),
                "build plugins/mpi of this version again");
  }
  return *entry();
}

void check_mpi(const lockstep_mpi& mpi, int code, const char* call) {
  if (code == 0) return;
  char words[512];
  mpi.explain(code, words, sizeof words);
  throw Error(Blame::machine, text("MPI ", call, " failed: ", words),
              "a rank may be gone: see its last lines; `lockstep doctor` checks MPI");
}

// Polls the collectives under way, oldest first, and announces their ends.
class MpiBackend::Poller {
 public:
  using After = std::function<void()>;

  explicit Poller(const lockstep_mpi& mpi) : mpi_(mpi), thread_([this](const std::stop_token& stop) { loop(stop); }) {}

  void add(lockstep_mpi_request* request, c10::intrusive_ptr<FutureWork> work, After after) {
    {
      const std::lock_guard lock(mutex_);
      pending_.push_back({request, std::move(work), std::move(after)});
    }
    arrived_.notify_one();
  }

 private:
  struct Pending {
    lockstep_mpi_request* request;
    c10::intrusive_ptr<FutureWork> work;
    After after;
  };

  void loop(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "mpi-poller");
    std::deque<Pending> mine;
    int idle_rounds = 0;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (mine.empty()) arrived_.wait(lock, stop, [&] { return !pending_.empty(); });
        if (mine.empty() && pending_.empty()) return;  // asked to stop
        for (auto& pending : pending_) mine.push_back(std::move(pending));
        pending_.clear();
      }
      idle_rounds = poll(mine) ? 0 : idle_rounds + 1;
      back_off(idle_rounds);
    }
  }

  // Short collectives end within microseconds: yield first. Then sleep: on an oversubscribed node a spinning poller
  // would take the core from the backward pass that it waits for.
  static void back_off(int idle_rounds) {
    if (idle_rounds < 20) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(idle_rounds < 200 ? 20 : 100));
    }
  }

  bool poll(std::deque<Pending>& mine) {
    bool any = false;
    for (auto it = mine.begin(); it != mine.end();) {
      int32_t done = 0;
      const int code = mpi_.test(it->request, &done);
      if (!done && code == 0) {
        ++it;
        continue;
      }
      any = true;
      announce(*it, code);
      it = mine.erase(it);
    }
    return any;
  }

  void announce(Pending& pending, int code) {
    try {
      check_mpi(mpi_, code, "collective");
      if (pending.after) pending.after();
      pending.work->complete();
    } catch (...) {
      pending.work->fail(std::current_exception());
    }
  }

  const lockstep_mpi& mpi_;
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

void check_tensor(const at::Tensor& tensor) {
  base::ensure(tensor.device().is_cpu() && tensor.is_contiguous(), "MPI is given contiguous CPU tensors");
}

}  // namespace

MpiBackend::MpiBackend(const lockstep_mpi& mpi)
    : c10d::Backend(mpi.rank(), mpi.size()), mpi_(mpi), poller_(std::make_unique<Poller>(mpi)) {}

MpiBackend::~MpiBackend() = default;

c10::intrusive_ptr<c10d::Work> MpiBackend::allreduce(std::vector<at::Tensor>& tensors,
                                                     const c10d::AllreduceOptions& options) {
  base::ensure(tensors.size() == 1 && options.reduceOp == c10d::ReduceOp::SUM, "one tensor, summed");
  check_tensor(tensors[0]);
  lockstep_mpi_request* request = nullptr;
  check_mpi(
      mpi_,
      mpi_.all_reduce_sum(tensors[0].data_ptr(), tensors[0].numel(), mpi_type(tensors[0].scalar_type()), &request),
      "all-reduce");
  auto work = c10::make_intrusive<FutureWork>(c10d::OpType::ALLREDUCE, tensors);
  poller_->add(request, work, {});
  return work;
}

c10::intrusive_ptr<c10d::Work> MpiBackend::broadcast(std::vector<at::Tensor>& tensors,
                                                     const c10d::BroadcastOptions& options) {
  base::ensure(tensors.size() == 1, "one tensor is broadcast at a time");
  check_tensor(tensors[0]);
  lockstep_mpi_request* request = nullptr;
  check_mpi(mpi_,
            mpi_.broadcast(tensors[0].data_ptr(), static_cast<int64_t>(tensors[0].nbytes()),
                           static_cast<int32_t>(options.rootRank), &request),
            "broadcast");
  auto work = c10::make_intrusive<FutureWork>(c10d::OpType::BROADCAST, tensors);
  poller_->add(request, work, {});
  return work;
}

c10::intrusive_ptr<c10d::Work> MpiBackend::allgather(std::vector<std::vector<at::Tensor>>& out,
                                                     std::vector<at::Tensor>& in, const c10d::AllgatherOptions&) {
  base::ensure(in.size() == 1 && out.size() == 1, "one tensor is gathered at a time");
  check_tensor(in[0]);
  const int64_t each = in[0].numel();
  at::Tensor flat = at::empty({size_ * each}, in[0].options());
  lockstep_mpi_request* request = nullptr;
  check_mpi(mpi_, mpi_.all_gather(in[0].data_ptr(), flat.data_ptr(), static_cast<int64_t>(in[0].nbytes()), &request),
            "all-gather");
  auto work = c10::make_intrusive<FutureWork>(c10d::OpType::ALLGATHER, out[0]);
  poller_->add(request, work, [flat, targets = out[0], source = in[0], each] {
    for (size_t i = 0; i < targets.size(); ++i) {
      targets[i].copy_(flat.narrow(0, static_cast<int64_t>(i) * each, each).view(source.sizes()));
    }
  });
  return work;
}

c10::intrusive_ptr<c10d::Work> MpiBackend::barrier(const c10d::BarrierOptions&) {
  lockstep_mpi_request* request = nullptr;
  check_mpi(mpi_, mpi_.barrier(&request), "barrier");
  auto work = c10::make_intrusive<FutureWork>(c10d::OpType::BARRIER, std::vector<at::Tensor>{});
  poller_->add(request, work, {});
  return work;
}

}  // namespace lockstep::comm
