// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/fetch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "lockstep/base/coroutine.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/file_memory.h"
#include "lockstep/loader/pread_ring.h"
#include "lockstep/loader/quiet_thread.h"

namespace lockstep::loader {
namespace {

// All of `into`, or 0 with an early end, or -errno.
base::Coroutine<int64_t> read_fully(ReadRing& ring, int file, std::span<std::byte> into, int64_t offset) {
  size_t done = 0;
  while (done < into.size()) {
    const int64_t got = co_await ring.read(file, into.subspan(done), offset + static_cast<int64_t>(done));
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) co_return got;
    done += static_cast<size_t>(got);
  }
  co_return static_cast<int64_t>(done);
}

// `outcome` as read_fully says.
void check_read(const Store& store, int64_t id, int64_t outcome, std::span<const std::byte> bytes) {
  if (outcome <
      0) {  // no fault of the sample: who passes over bad samples must not train through a failing file system
    errno = static_cast<int>(-outcome);
    base::throw_errno(base::text("cannot read ", store.name(id)));
  }
  if (outcome == 0) {
    throw base::Error(base::Blame::user, base::text(store.name(id), ": the shard ends within it"),
                      "copy the shard again");
  }
  store.check(id, bytes);
}

}  // namespace

// Its members are named by the threads that may touch them.
struct Fetcher::State {
  struct FetchedImage {
    int64_t id = 0;
    std::vector<std::byte> bytes;
    int64_t outcome = 0;  // as read_fully says
  };
  struct Wanted {
    int64_t ticket = 0;
    int64_t id = 0;
    bool alone = false;  // its extent cannot be read
  };
  struct Held {  // an extent, there or on its way
    std::vector<std::byte> bytes;
    bool there = false;
    int64_t last_use = 0;
    std::vector<Wanted> waiting = {};  // while it is on its way
  };

  const Store& store;
  const Options options;
  std::unique_ptr<ReadRing> ring;  // the reading thread's

  std::mutex mutex;  // guards what follows
  std::condition_variable_any wanted_or_freed;
  std::condition_variable read_done;
  std::deque<Wanted> wanted;
  std::map<int64_t, std::optional<FetchedImage>> images;  // by ticket; empty while being read
  FileMemory files;                                       // of images under way, read, or with a taker
  std::map<int64_t, Held> extents;
  // Each has the memory of the largest, so that the next can take what one leaves, as FileMemory's do.
  int64_t extent_room = 0;
  int64_t extent_bytes = 0;
  int64_t num_uses = 0;
  int64_t bytes_read = 0;
  int64_t num_reads = 0;
  bool is_abandoned = false;
  bool has_ended = false;     // the thread
  std::exception_ptr broken;  // no memory, most likely: nothing more is read
  std::jthread thread;

  State(const Store& from, const Options& how) : store(from), options(how), files(how.byte_budget) {
    if (!reads_extents()) return;
    for (const Extent& extent : options.extents->all()) extent_room = std::max(extent_room, extent.size);
  }
  ~State() {
    if (thread.joinable()) {
      thread.request_stop();
      thread.join();
    }
  }

  bool reads_extents() const { return options.extents && !options.extents->empty(); }
  int64_t size_of(int64_t id) const { return store.locate(id).size; }

  bool can_start() const {
    if (wanted.empty() || !files.has_room(size_of(wanted.front().id))) return false;
    if (!reads_extents() || wanted.front().alone) return ring->num_under_way() < options.depth;
    const int64_t number = options.extents->of(wanted.front().id);
    return extents.contains(number) || (ring->num_under_way() < options.depth && extent_fits());
  }

  bool extent_fits() const {
    int64_t busy = 0;  // being read: these cannot go
    for (const auto& [number, extent] : extents) busy += extent.there ? 0 : extent_room;
    return busy == 0 || busy + extent_room <= options.extent_budget;
  }

  // Of the exception at hand. REQUIRES: the mutex.
  void give_up() {
    if (!broken) broken = std::current_exception();
    read_done.notify_all();
  }

  base::Detached fetch(Wanted what, std::vector<std::byte> memory) {
    try {
      const Location where = store.locate(what.id);
      const int64_t outcome = co_await read_fully(*ring, store.descriptor(where.file), memory, where.offset);
      const std::lock_guard lock(mutex);
      bytes_read += where.size;
      ++num_reads;
      images[what.ticket] = FetchedImage{what.id, std::move(memory), outcome};
      read_done.notify_all();
    } catch (...) {
      const std::lock_guard lock(mutex);
      give_up();
    }
  }

  // An extent that cannot be read is forgotten: its images are read one by one, and those that cannot be are named.
  base::Detached fetch_extent(int64_t number, std::vector<std::byte> memory) {
    try {
      const Extent& extent = options.extents->all()[static_cast<size_t>(number)];
      const int64_t outcome = co_await read_fully(*ring, store.descriptor(extent.file), memory, extent.offset);
      const std::lock_guard lock(mutex);
      bytes_read += extent.size;
      ++num_reads;
      take_extent(number, std::move(memory), outcome);
    } catch (...) {
      const std::lock_guard lock(mutex);
      give_up();
    }
  }

  // REQUIRES: the mutex.
  void take_extent(int64_t number, std::vector<std::byte>&& memory, int64_t outcome) {
    Held& arrived = extents.at(number);
    arrived.bytes = std::move(memory);
    arrived.there = true;
    if (outcome > 0) {
      for (const Wanted& what : arrived.waiting) copy_out(what, number, arrived);
      arrived.waiting.clear();
    } else {
      for (auto what = arrived.waiting.rbegin(); what != arrived.waiting.rend(); ++what) {
        wanted.push_front({what->ticket, what->id, true});  // in their order, before what is wanted later
        files.release(size_of(what->id));
      }
      extent_bytes -= extent_room;
      extents.erase(number);
    }
    read_done.notify_all();
  }

  // REQUIRES: the mutex.
  void copy_out(const Wanted& what, int64_t number, Held& from) {
    const Location where = store.locate(what.id);
    std::vector<std::byte> memory = files.find(where.size);
    const int64_t begin = where.offset - options.extents->all()[static_cast<size_t>(number)].offset;
    std::memcpy(memory.data(), from.bytes.data() + begin, memory.size());
    from.last_use = ++num_uses;
    images[what.ticket] = FetchedImage{what.id, std::move(memory), where.size};
  }

  // Room for one more extent: the longest unused ones go. Gives the memory of the last of them.
  std::vector<std::byte> make_room() {
    std::vector<std::byte> memory;
    while (extent_bytes + extent_room > options.extent_budget) {
      auto oldest = extents.end();
      for (auto it = extents.begin(); it != extents.end(); ++it) {
        if (it->second.there && (oldest == extents.end() || it->second.last_use < oldest->second.last_use)) oldest = it;
      }
      if (oldest == extents.end()) break;
      memory = std::move(oldest->second.bytes);
      extent_bytes -= extent_room;
      extents.erase(oldest);
    }
    return memory;
  }

  void start_from_extent(const Wanted& what, std::unique_lock<std::mutex>& lock) {
    const int64_t number = options.extents->of(what.id);
    if (const auto found = extents.find(number); found != extents.end()) {
      if (!found->second.there) return found->second.waiting.push_back(what);
      copy_out(what, number, found->second);
      return read_done.notify_all();
    }
    std::vector<std::byte> memory = make_room();
    extent_bytes += extent_room;
    extents[number].waiting.push_back(what);
    lock.unlock();
    memory.reserve(static_cast<size_t>(extent_room));
    memory.resize(static_cast<size_t>(options.extents->all()[static_cast<size_t>(number)].size));
    fetch_extent(number, std::move(memory));
    lock.lock();
  }

  // Starts what may be started. The lock is left while a coroutine runs: it takes it itself at its end.
  void start_some(std::unique_lock<std::mutex>& lock) {
    while (can_start()) {
      const Wanted what = wanted.front();
      wanted.pop_front();
      files.reserve(size_of(what.id));
      if (reads_extents() && !what.alone) {
        start_from_extent(what, lock);
        continue;
      }
      std::vector<std::byte> memory = files.find(size_of(what.id));
      lock.unlock();
      fetch(what, std::move(memory));
      lock.lock();
    }
  }

  void try_to_start(std::unique_lock<std::mutex>& lock) {
    try {
      start_some(lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      give_up();
    }
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (true) {
      if (!stop.stop_requested() && !broken) try_to_start(lock);
      if (ring->num_under_way() > 0) {  // also at the end: the kernel writes into their memory
        lock.unlock();
        ring->run_some();
        lock.lock();
      } else if (stop.stop_requested()) {
        return;
      } else {
        wanted_or_freed.wait(lock, stop, [this] { return !broken && can_start(); });
      }
    }
  }
};

Fetcher::Fetcher(const Store& store, const Options& options) : state_(std::make_unique<State>(store, options)) {
  if (options.uring) state_->ring = make_uring(options.depth);
  if (!state_->ring) state_->ring = make_pread_ring(options.depth);
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) {
    settle_quiet_thread("ls-read");
    state->run(stop);
    const std::lock_guard lock(state->mutex);
    state->has_ended = true;
    state->read_done.notify_all();
  });
}

Fetcher::~Fetcher() = default;

void Fetcher::want(int64_t ticket, int64_t id) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted.push_back({ticket, id});
  state_->images[ticket] = std::nullopt;
  state_->wanted_or_freed.notify_one();
}

std::vector<std::byte> Fetcher::take(int64_t ticket) {
  std::unique_lock lock(state_->mutex);
  const auto found = state_->images.find(ticket);
  base::ensure(found != state_->images.end(), "a ticket that was wanted and not yet taken");
  state_->read_done.wait(lock, [&] { return found->second.has_value() || state_->is_abandoned || state_->broken; });
  if (!found->second && !state_->is_abandoned) std::rethrow_exception(state_->broken);
  if (!found->second) return {};
  State::FetchedImage image = std::move(*found->second);
  state_->images.erase(found);
  lock.unlock();
  try {
    check_read(state_->store, image.id, image.outcome, image.bytes);
  } catch (const base::Error&) {
    if (!state_->store.forget_copy(state_->store.locate(image.id).file)) {
      give_back(std::move(image.bytes));
      throw;
    }
    try {
      state_->store.read(image.id, image.bytes);  // from its source
    } catch (...) {
      give_back(std::move(image.bytes));
      throw;
    }
  }
  return std::move(image.bytes);
}

void Fetcher::give_back(std::vector<std::byte>&& memory) {
  const std::lock_guard lock(state_->mutex);
  state_->files.give_back(std::move(memory));
  state_->wanted_or_freed.notify_one();
}

void Fetcher::abandon() {
  const std::lock_guard lock(state_->mutex);
  state_->is_abandoned = true;
  state_->read_done.notify_all();
}

bool Fetcher::end_within(double seconds) {
  state_->thread.request_stop();
  std::unique_lock lock(state_->mutex);
  return state_->read_done.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return state_->has_ended; });
}

const char* Fetcher::way() const {
  return state_->ring->name();
}

int64_t Fetcher::bytes_read() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes_read;
}

int64_t Fetcher::num_reads() const {
  const std::lock_guard lock(state_->mutex);
  return state_->num_reads;
}

}  // namespace lockstep::loader
