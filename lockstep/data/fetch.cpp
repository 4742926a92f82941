// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/fetch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/task.h"
#include "lockstep/base/text.h"

namespace lockstep::data {
namespace {

class PlainRing final : public ReadRing {
 public:
  void run_some() override {}
  int64_t num_under_way() const override { return 0; }
  const char* name() const override { return "pread"; }

 protected:
  bool try_now(Read& read) override {
    const ssize_t got = ::pread(read.file, read.into.data(), read.into.size(), read.offset);
    read.result = got < 0 ? -errno : got;
    return true;
  }
  void submit(Read&) override {}
};

// All of `into`, or 0 with an early end, or -errno.
base::Task<int64_t> read_fully(ReadRing& ring, int file, std::span<std::byte> into, int64_t offset) {
  size_t done = 0;
  while (done < into.size()) {
    const int64_t got = co_await ring.read(file, into.subspan(done), offset + static_cast<int64_t>(done));
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) co_return got;
    done += static_cast<size_t>(got);
  }
  co_return static_cast<int64_t>(done);
}

}  // namespace

std::unique_ptr<ReadRing> make_plain_ring() {
  return std::make_unique<PlainRing>();
}

// Its members are named by the threads that may touch them.
struct Fetcher::State {
  struct Picture {
    int64_t id = 0;
    std::vector<std::byte> bytes;
    int64_t outcome = 0;  // as read_fully says
  };

  const Store& store;
  const Options options;
  std::unique_ptr<ReadRing> ring;  // the reading thread's
  std::vector<int> files;

  std::mutex mutex;  // guards what follows
  std::condition_variable_any wanted_or_freed;
  std::condition_variable read_done;
  std::deque<std::pair<int64_t, int64_t>> wanted;      // ticket and id
  std::map<int64_t, std::optional<Picture>> pictures;  // by ticket; empty while being read
  std::vector<std::vector<std::byte>> spare;
  int64_t bytes = 0;  // under way, read, or with a taker
  std::jthread thread;

  State(const Store& from, const Options& how) : store(from), options(how) {}
  ~State() {
    if (thread.joinable()) {
      thread.request_stop();
      thread.join();
    }
    for (const int file : files) ::close(file);
  }

  void open_files() {
    for (int64_t i = 0; i < store.num_files(); ++i) {
      const int file = ::open(store.path(i).c_str(), O_RDONLY | O_CLOEXEC);
      if (file < 0) base::throw_errno(base::text("cannot open ", store.path(i)));
      files.push_back(file);
    }
  }

  // The next picture that fits into the budget. REQUIRES: the mutex.
  bool has_room(int64_t size) const { return bytes == 0 || bytes + size <= options.byte_budget; }
  bool can_start() const {
    return !wanted.empty() && ring->num_under_way() < options.depth &&
           has_room(store.locate(wanted.front().second).size);
  }

  base::Detached fetch(int64_t ticket, int64_t id, std::vector<std::byte> memory) {
    const Location where = store.locate(id);
    memory.resize(static_cast<size_t>(where.size));
    const int64_t outcome = co_await read_fully(*ring, files[static_cast<size_t>(where.file)], memory, where.offset);
    const std::lock_guard lock(mutex);
    pictures[ticket] = Picture{id, std::move(memory), outcome};
    read_done.notify_all();
  }

  // Starts what may be started. The lock is left while a coroutine runs: it takes it itself at its end.
  void start_some(std::unique_lock<std::mutex>& lock) {
    while (can_start()) {
      const auto [ticket, id] = wanted.front();
      wanted.pop_front();
      bytes += store.locate(id).size;
      std::vector<std::byte> memory;
      if (!spare.empty()) {
        memory = std::move(spare.back());
        spare.pop_back();
      }
      lock.unlock();
      fetch(ticket, id, std::move(memory));
      lock.lock();
    }
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (true) {
      if (!stop.stop_requested()) start_some(lock);
      if (ring->num_under_way() > 0) {  // also at the end: the kernel writes into their memory
        lock.unlock();
        ring->run_some();
        lock.lock();
      } else if (stop.stop_requested()) {
        return;
      } else {
        wanted_or_freed.wait(lock, stop, [this] { return can_start(); });
      }
    }
  }
};

Fetcher::Fetcher(const Store& store, const Options& options) : state_(std::make_unique<State>(store, options)) {
  state_->open_files();
  if (options.uring) state_->ring = make_uring(options.depth);
  if (!state_->ring) state_->ring = make_plain_ring();
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "ls-read");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    state->run(stop);
  });
}

Fetcher::~Fetcher() = default;

void Fetcher::want(int64_t ticket, int64_t id) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted.emplace_back(ticket, id);
  state_->pictures[ticket] = std::nullopt;
  state_->wanted_or_freed.notify_one();
}

std::vector<std::byte> Fetcher::take(int64_t ticket) {
  std::unique_lock lock(state_->mutex);
  const auto found = state_->pictures.find(ticket);
  base::ensure(found != state_->pictures.end(), "a ticket that was wanted and not yet taken");
  state_->read_done.wait(lock, [&] { return found->second.has_value(); });
  State::Picture picture = std::move(*found->second);
  state_->pictures.erase(found);
  lock.unlock();
  const auto fail = [&](const std::string& why) {
    const std::string name = state_->store.name(picture.id);
    give_back(std::move(picture.bytes));
    throw base::Error(base::Blame::user, base::text(name, ": ", why), "copy the shard again");
  };
  if (picture.outcome == 0) fail("the shard ends within it");
  if (picture.outcome < 0) fail(std::strerror(static_cast<int>(-picture.outcome)));
  try {
    check_bytes(state_->store, picture.id, picture.bytes);
  } catch (...) {
    give_back(std::move(picture.bytes));
    throw;
  }
  return std::move(picture.bytes);
}

void Fetcher::give_back(std::vector<std::byte>&& memory) {
  const std::lock_guard lock(state_->mutex);
  state_->bytes -= static_cast<int64_t>(memory.size());
  state_->spare.push_back(std::move(memory));
  state_->wanted_or_freed.notify_one();
}

const char* Fetcher::way() const {
  return state_->ring->name();
}

}  // namespace lockstep::data
