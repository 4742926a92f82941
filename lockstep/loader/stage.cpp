// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/stage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/quiet_thread.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/site/memory.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/site/storage.h"

namespace lockstep::loader {

// Closed at the end of its scope. What lies on this node is opened with O_NOFOLLOW; a shard of the source may be a
// link.
class HeldFile {
 public:
  HeldFile() = default;
  HeldFile(const base::Path& path, int flags, mode_t mode = 0600)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~HeldFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

namespace {

// A file that does not outlive its scope; one that was renamed by then stays.
class Unlinked {
 public:
  explicit Unlinked(base::Path path) : path_(std::move(path)) {}
  ~Unlinked() { ::unlink(path_.c_str()); }
  Unlinked(const Unlinked&) = delete;
  Unlinked& operator=(const Unlinked&) = delete;

 private:
  base::Path path_;
};

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kChunk = size_t{8} << 20;
constexpr int64_t kTimedBytes = int64_t{64} << 20;
constexpr double kFullest = 0.9;  // of the free space: others need some too
constexpr auto kPause = std::chrono::milliseconds(200);

int64_t size_of(const base::Path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

base::Path copy_path(const base::Path& folder, const shards::ShardSet& shards, int64_t shard) {
  return folder / shards.tar_path(shard).filename();
}

// Reads the beginning of the first shard, not out of the page cache where the kernel obeys.
double timed_rate(const base::Path& path, int64_t size) {
  const HeldFile file(path, O_RDONLY);
  if (!file) base::throw_errno(text("cannot open ", path.string()));
  ::posix_fadvise(file.get(), 0, kTimedBytes, POSIX_FADV_DONTNEED);
  std::vector<char> chunk(kChunk);
  const double start = base::steady_seconds();
  int64_t done = 0;
  while (done < std::min(size, kTimedBytes)) {
    const ssize_t got = ::pread(file.get(), chunk.data(), chunk.size(), done);
    if (got <= 0) break;
    done += got;
  }
  return static_cast<double>(done) / std::max(base::steady_seconds() - start, 1e-6);
}

base::Path local_folder(const Collection& collection, const std::string& where, std::string& why_not) {
  if (where == "ram") return "/dev/shm";
  std::error_code error;
  if (where != "auto") {
    if (!std::filesystem::is_directory(where, error)) {
      throw Error(Blame::user, text("data.stage: there is no folder ", where),
                  "name a folder of this node, \"ram\" or \"auto\", or leave it out");
    }
    return where;
  }
  const std::string scratch = site::job_scratch();
  const base::Path temporary = scratch.empty() ? std::filesystem::temp_directory_path(error) : base::Path(scratch);
  if (!scratch.empty() && !std::filesystem::is_directory(temporary, error)) {
    why_not = text("PBS_JOBFS=", scratch, " is no folder");
  } else if (error) {  // it came along from another node, perhaps
    const char* named = std::getenv("TMPDIR");
    why_not = text(named ? text("TMPDIR=", named) : std::string("/tmp"), " is no folder");
  } else if (!site::is_network(site::read_storage("data", collection.root).type)) {
    why_not = "the shards lie on this node already";
  } else if (site::is_network(site::read_storage("temporary", temporary).type)) {
    why_not = text(temporary.string(), " is no storage of this node");
  }
  return why_not.empty() ? temporary : base::Path();
}

}  // namespace

bool StagePlan::fits() const {
  return !folder.empty() && static_cast<double>(bytes - bytes_there) <= kFullest * static_cast<double>(free_bytes);
}

double StagePlan::seconds() const {
  return read_rate > 0 ? static_cast<double>(bytes - bytes_there) / read_rate : 0;
}

std::string StagePlan::to_text() const {
  if (folder.empty()) return text("no copies of the shards on this node: ", why_not);
  const auto amount = [](int64_t count) { return base::format_bytes(static_cast<double>(count)); };
  const std::string there = bytes_there > 0 ? text(" (", amount(bytes_there), " are there already)") : "";
  if (bytes_there == bytes) {
    return text("copies of the shards are on this node already, ", amount(bytes), ": checking them (", folder.string(),
                ")");
  }
  const std::string room = text(amount(free_bytes), " are free there");
  if (!fits()) {
    return text("no copies of the shards on this node: ", amount(bytes), there, " do not fit into ", folder.string(),
                ", ", room);
  }
  return text("copying the shards to this node, ", amount(bytes), there, ", in about ",
              base::format_duration(seconds()), " at ", base::format_rate(read_rate), "; ", room, " (", folder.string(),
              ")");
}

int64_t shard_bytes(const Collection& collection) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < collection.shards->num_shards(); ++i) bytes += collection.shards->index(i).tar_bytes();
  return bytes;
}

StagePlan plan_stage(const Collection& collection, const std::string& where) {
  base::ensure(collection.shards != nullptr, "shards to copy");
  StagePlan plan;
  const base::Path parent = local_folder(collection, where, plan.why_not);
  plan.bytes = shard_bytes(collection);
  if (parent.empty()) return plan;
  plan.folder = parent / text("lockstep-", ::geteuid(), "-", collection.fingerprint().substr(0, 16));
  const site::Storage storage = site::read_storage("stage", parent);
  plan.in_memory = storage.type == "tmpfs" || storage.type == "ramfs";
  plan.free_bytes = static_cast<int64_t>(storage.free_bytes);
  // Half of what is free: the training needs memory too.
  if (plan.in_memory)
    plan.free_bytes = std::min(plan.free_bytes, static_cast<int64_t>(site::read_memory().available / 2));
  for (int64_t i = 0; i < collection.shards->num_shards(); ++i) {
    const int64_t size = collection.shards->index(i).tar_bytes();
    if (size_of(copy_path(plan.folder, *collection.shards, i)) == size) plan.bytes_there += size;
  }
  if (plan.bytes_there < plan.bytes) {
    plan.read_rate = timed_rate(collection.shards->tar_path(0), collection.shards->index(0).tar_bytes());
  }
  return plan;
}

struct Staging::State {
  const std::shared_ptr<const shards::ShardSet> shards;
  const StagePlan plan;
  const Options options;
  const int64_t num_shards;
  std::vector<std::atomic<int>> descriptors;  // of copies in use; -1: none
  std::vector<std::atomic<bool>> damaged;     // never again
  std::optional<HeldFile> users;              // locked shared by every process that uses the folder

  mutable std::mutex mutex;  // guards what follows
  Progress progress;
  bool done = false;
  std::vector<int> opened;  // closed at the end only: reads may be under way
  std::condition_variable_any stopping;
  std::jthread thread;

  State(const Collection& from, const StagePlan& how, const Options& options_)
      : shards(from.shards),
        plan(how),
        options(options_),
        num_shards(shards->num_shards()),
        descriptors(static_cast<size_t>(num_shards)),
        damaged(static_cast<size_t>(num_shards)) {
    for (auto& descriptor : descriptors) descriptor = -1;
  }

  void enter() {
    users.emplace(open_folder(plan.folder), O_RDWR | O_CREAT | O_NOFOLLOW);
    const bool locked = *users && ::flock(users->get(), LOCK_SH) == 0;
    const int code = errno;
    if (!locked) users.reset();
    errno = code;
    if (!locked) base::throw_errno(text("cannot lock ", plan.folder.string()));
  }

  ~State() {
    thread.request_stop();
    if (thread.joinable()) thread.join();
    for (const int descriptor : opened) ::close(descriptor);
    if (plan.in_memory && users && ::flock(users->get(), LOCK_EX | LOCK_NB) == 0) {
      std::error_code ignored;  // what cannot be removed is there for the next run
      std::filesystem::remove_all(plan.folder, ignored);
    }
  }

  // Nobody else's: temporary folders are open to all.
  static base::Path open_folder(const base::Path& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) base::throw_errno(text("cannot make ", folder.string()));
    struct stat status {};
    const bool ours = ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
    if (!ours) {
      throw Error(Blame::user, text(folder.string(), " belongs to somebody else"), "set data.stage to another folder");
    }
    return folder / ".users";
  }

  base::Path path(int64_t shard) const { return copy_path(plan.folder, *shards, shard); }
  bool is_used(int64_t shard) const {
    return descriptors[static_cast<size_t>(shard)] >= 0 || damaged[static_cast<size_t>(shard)];
  }
  bool all_used() const {
    for (int64_t i = 0; i < num_shards; ++i) {
      if (!is_used(i)) return false;
    }
    return true;
  }

  void use(int64_t shard) {
    HeldFile copy(path(shard), O_RDONLY | O_NOFOLLOW);
    if (!copy) return;
    const std::lock_guard lock(mutex);
    opened.push_back(copy.get());
    descriptors[static_cast<size_t>(shard)] = copy.release();
    ++progress.shards;
    progress.bytes += shards->index(shard).tar_bytes();
  }

  bool pause(const std::stop_token& stop, std::chrono::duration<double> time) {
    std::unique_lock lock(mutex);
    stopping.wait_for(lock, stop, time, [] { return false; });
    return !stop.stop_requested();
  }

  bool is_right(const base::Path& file, int64_t shard, const std::stop_token& stop) const {
    const shards::ShardIndex& index = shards->index(shard);
    const HeldFile copy(file, O_RDONLY | O_NOFOLLOW);
    std::vector<std::byte> chunk(kChunk);
    uint32_t crc = 0;
    int64_t at = 0;
    while (copy && at < index.tar_bytes() && !stop.stop_requested()) {
      const ssize_t got = ::pread(copy.get(), chunk.data(), chunk.size(), at);
      if (got <= 0) break;
      crc = base::crc32c(std::span(chunk.data(), static_cast<size_t>(got)), crc);
      at += got;
    }
    return at == index.tar_bytes() && crc == index.tar_crc32c();
  }

  // On the disk when it returns, and no longer in the page cache: who reads it back reads the disk. False when it was
  // stopped in between.
  bool copy(int64_t shard, const base::Path& to, const std::stop_token& stop) {
    const base::Path from = shards->tar_path(shard);
    const HeldFile in(from, O_RDONLY), out(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    if (!in) base::throw_errno(text("cannot open ", from.string()));
    if (!out) base::throw_errno(text("cannot write ", to.string()));
    const auto least = options.bytes_per_second > 0 ? static_cast<size_t>(options.bytes_per_second / 20) : kChunk;
    std::vector<char> chunk(std::clamp<size_t>(least, 4096, kChunk));
    for (int64_t at = 0;;) {
      const ssize_t got = ::pread(in.get(), chunk.data(), chunk.size(), at);
      if (got < 0) base::throw_errno(text("cannot read ", from.string()));
      if (got == 0) {
        if (::fdatasync(out.get()) != 0) base::throw_errno(text("cannot write ", to.string()));
        ::posix_fadvise(out.get(), 0, 0, POSIX_FADV_DONTNEED);
        return true;
      }
      for (ssize_t put = 0; put < got;) {
        const ssize_t more = ::write(out.get(), chunk.data() + put, static_cast<size_t>(got - put));
        if (more <= 0) base::throw_errno(text("cannot write ", to.string()));
        put += more;
      }
      at += got;
      if (stop.stop_requested()) return false;
      const double due = options.bytes_per_second > 0 ? static_cast<double>(got) / options.bytes_per_second : 0;
      if (due > 0 && !pause(stop, std::chrono::duration<double>(due))) return false;
    }
  }

  // One shard, by the holder of the lock.
  void provide(int64_t shard, const std::stop_token& stop) {
    const base::Path final = path(shard);
    if (size_of(final) >= 0) {
      if (is_right(final, shard, stop)) return use(shard);
      if (stop.stop_requested()) return;
      ::unlink(final.c_str());
    }
    base::Path partial = final;
    partial += ".partial";
    const Unlinked unfinished(partial);
    if (!copy(shard, partial, stop)) return;
    if (!is_right(partial, shard, stop)) {
      if (stop.stop_requested()) return;
      throw Error(Blame::user, text(shards->tar_path(shard).string(), ": not what its index says (CRC-32C)"),
                  "lockstep prep --verify names what is damaged");
    }
    if (::rename(partial.c_str(), final.c_str()) != 0) base::throw_errno(text("cannot rename ", partial.string()));
    use(shard);
  }

  void work(const std::stop_token& stop) {
    const HeldFile lock(plan.folder / ".lock", O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!lock) base::throw_errno(text("cannot write into ", plan.folder.string()));
    std::vector<bool> checked(static_cast<size_t>(num_shards));  // by us; a wrong one is the holder's to fix
    while (!stop.stop_requested() && !all_used()) {
      if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
        for (int64_t i = 0; i < num_shards && !stop.stop_requested(); ++i) {
          if (!is_used(i)) provide(i, stop);
        }
        return;
      }
      for (int64_t i = 0; i < num_shards; ++i) {
        if (is_used(i) || checked[static_cast<size_t>(i)] || size_of(path(i)) != shards->index(i).tar_bytes()) continue;
        checked[static_cast<size_t>(i)] = true;
        if (is_right(path(i), i, stop)) use(i);
      }
      pause(stop, kPause);
    }
  }

  // A full disk, or a node that has no room for us, is no reason to end a training: it goes on from the source.
  template <class Work>
  bool try_to(const Work& work) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      progress.trouble = error.what();
      return false;
    }
  }

  void run(const std::stop_token& stop) {
    settle_quiet_thread("ls-stage");
    try_to([&] { work(stop); });
    const std::lock_guard lock(mutex);
    done = true;
  }
};

Staging::Staging(const Collection& collection, const StagePlan& plan, const Options& options)
    : state_(std::make_unique<State>(collection, plan, options)) {
  base::ensure(plan.fits(), "copies that fit");
  state_->done = !state_->try_to([this] { state_->enter(); });
  if (state_->done) return;
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

Staging::~Staging() = default;

int Staging::descriptor(int64_t shard) const {
  return state_->descriptors[static_cast<size_t>(shard)];
}

bool Staging::forget(int64_t shard) {
  auto& damaged = state_->damaged[static_cast<size_t>(shard)];
  if (state_->descriptors[static_cast<size_t>(shard)].load() >= 0) damaged = true;  // first: nobody finds neither
  state_->descriptors[static_cast<size_t>(shard)] = -1;
  return damaged;
}

Staging::Progress Staging::progress() const {
  const std::lock_guard lock(state_->mutex);
  return state_->progress;
}

bool Staging::is_done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

}  // namespace lockstep::loader
