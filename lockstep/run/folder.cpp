// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/scheduler.h"

namespace lockstep::run {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr auto kHeartbeat = std::chrono::seconds(5);
// A killed process needs a moment to die; who starts again at once is not turned away.
constexpr int kPatience = 10;
constexpr auto kPause = std::chrono::milliseconds(100);

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return buffer;
}

std::string pid_space() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
}

// Field 22 of /proc/<pid>/stat; 0 when there is no such process, or it is dead and only not yet waited for. The command
// name (field 2) may hold blanks and brackets, so counting starts behind the last bracket.
int64_t start_of(int64_t pid) {
  try {
    const std::string stat = base::read_file(text("/proc/", pid, "/stat"));
    const auto fields = base::split(std::string_view(stat).substr(stat.rfind(')') + 2), ' ');
    if (fields[0] == "Z" || fields[0] == "X") return 0;
    return fields.size() > 19 ? std::stoll(fields[19]) : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

std::string to_line(const Holder& holder) {
  Json line = Json::object();
  line["host"] = holder.host;
  line["pid_space"] = holder.pid_space;
  line["pid"] = holder.pid;
  line["pid_start"] = holder.pid_start;
  line["since"] = holder.since;
  if (!holder.job.empty()) {
    line["job"] = holder.job;
    line["restarts"] = holder.restarts;
  }
  return line.dump(-1) + "\n";
}

// None when there is no lock, or none that can be read as one. User error when it is no file: nobody of us made it.
std::optional<Holder> read_lock(const Path& lock) {
  const int descriptor = base::open_plain(lock, O_RDONLY);
  if (descriptor >= 0) ::close(descriptor);
  try {
    const Json line = base::read_json(lock);
    return Holder{line.at("host").as_string(), line.string_or("pid_space", ""), line.at("pid").as_int(),
                  line.int_or("pid_start", 0), line.string_or("since", ""),     line.string_or("job", ""),
                  line.int_or("restarts", 0)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<double> modified(const Path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

// Seconds since the lock was renewed, by the clock of the file system: hosts need not agree about the time.
double age_of(const Path& lock) {
  const Path probe = lock.string() + text(".clock-", site::host_name(), "-", ::getpid());
  const auto renewed = modified(lock);
  std::optional<double> now;
  try {
    base::FileWriter(probe, base::FileWriter::Mode::truncate).close();
    now = modified(probe);
    ::unlink(probe.c_str());
  } catch (const Error&) {  // a folder that we may only read
  }
  if (!now) now = static_cast<double>(std::time(nullptr));
  return renewed ? *now - *renewed : 0;
}

bool is_alive(const Holder& holder, const Path& lock) {
  const Holder self = this_process();
  if (!self.job.empty() && holder.job == self.job && holder.restarts < self.restarts) return false;
  return same_host(holder, self) ? is_running(holder) : age_of(lock) < RunFolder::kStaleSeconds;
}

[[noreturn]] void throw_held(const Path& root, const Holder& holder) {
  throw Error(
      Blame::user,
      text(root.string(), ": this run is in use by process ", holder.pid, " on host ", holder.host, " since ",
           holder.since),
      text("wait for it, end it (on ", holder.host, ": kill ", holder.pid, "), or choose another --run folder"));
}

// Where there are no hard links: the content follows the name, so that a reader may see an empty lock for a moment.
bool create_lock(const Path& lock, const Holder& self) {
  const int descriptor = ::open(lock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return false;
  const std::string line = to_line(self);
  const bool whole = ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::fsync(descriptor);
  ::close(descriptor);
  if (!whole) base::throw_errno(text("cannot write the lock ", lock.string()));
  return true;
}

// Writes what the lock will say. Who leaves may take the empty folder away (the supervisor does), at any moment until
// the draft stands in it: it is made again then.
void write_draft(const Path& draft, const std::string& line) {
  for (int attempt = 0;; ++attempt) {
    base::make_synced_folders(draft.parent_path());
    try {
      return base::write_file(draft, line);
    } catch (const Error&) {
      if (attempt == kPatience) throw;
    }
  }
}

// A hard link appears at once with its content, also over NFS, and fails when the name exists.
bool try_lock(const Path& lock, const Holder& self) {
  const Path draft = lock.string() + text(".", self.host, "-", self.pid);
  write_draft(draft, to_line(self));
  const int result = ::link(draft.c_str(), lock.c_str());
  const int code = errno;
  ::unlink(draft.c_str());
  if (result == 0) return true;
  if (code == EEXIST) return false;
  if ((code == EPERM || code == EOPNOTSUPP || code == ENOSYS || code == EMLINK)) return create_lock(lock, self);
  errno = code;
  base::throw_errno(text("cannot make the lock ", lock.string()));
}

// Moves a dead holder's lock away. When another process was faster, its fresh lock is put back.
void remove_stale(const Path& lock, const std::optional<Holder>& dead) {
  const Path aside = lock.string() + text(".stale-", site::host_name(), "-", ::getpid());
  if (::rename(lock.c_str(), aside.c_str()) != 0) return;
  if (read_lock(aside) != dead && ::link(aside.c_str(), lock.c_str()) != 0 && errno != EEXIST) {
    base::throw_errno(text("cannot restore the lock ", lock.string()));
  }
  ::unlink(aside.c_str());
}

}  // namespace

Holder this_process() {
  const site::Scheduler scheduler = site::read_scheduler();
  return {site::host_name(), pid_space(),      ::getpid(),        start_of(::getpid()),
          utc_now(),         scheduler.job_id, scheduler.restarts};
}

bool is_running(const Holder& process) {
  const int64_t start = start_of(process.pid);
  return start != 0 && start == process.pid_start;
}

bool same_host(const Holder& a, const Holder& b) {
  return a.host == b.host && a.pid_space == b.pid_space;
}

void break_lock(const Path& root, const Holder& dead) {
  const Path lock = RunPaths{root}.lock();
  const auto holder = read_lock(lock);
  if (holder && same_host(*holder, dead) && holder->pid == dead.pid && holder->pid_start == dead.pid_start) {
    remove_stale(lock, holder);
  }
}

// Renews the lock's time stamp until the end of the scope.
class RunFolder::Heartbeat {
 public:
  explicit Heartbeat(Path lock)
      : lock_(std::move(lock)), thread_([this](const std::stop_token& stop) { renew(stop); }) {
    ::pthread_setname_np(thread_.native_handle(), "run-lock");
  }

 private:
  void renew(const std::stop_token& stop) {
    base::leave_signals_to_others();
    std::unique_lock hold(mutex_);
    while (!wake_.wait_for(hold, stop, kHeartbeat, [&] { return stop.stop_requested(); })) {
      ::utimensat(AT_FDCWD, lock_.c_str(), nullptr, 0);
    }
  }

  Path lock_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

RunFolder::RunFolder(const Path& root, const std::function<void(std::string_view)>& say)
    : paths_{root}, self_(this_process()), made_(!base::is_there(root)) {
  std::error_code error;
  if (std::filesystem::exists(root, error) && !std::filesystem::is_directory(root, error))
    throw Error(Blame::user, text(root.string(), ": this is a file, not the folder of a run"),
                "give a folder with --run");
  const Path lock = paths_.lock();
  std::optional<double> renewed;  // when we first looked
  int removals = 0;
  for (int attempt = 0; !try_lock(lock, self_); ++attempt) {
    const auto holder = read_lock(lock);
    const bool empty = !holder && age_of(lock) < 1;  // perhaps its line is still to come
    if (empty || (holder && is_alive(*holder, lock))) {
      if (!renewed) renewed = modified(lock);
      const bool is_renewed = modified(lock) != renewed;
      if (holder && (is_renewed || (same_host(*holder, self_) && attempt >= kPatience))) throw_held(root, *holder);
      if (attempt == kPatience && holder && say) {
        say(text(root.string(), ": process ", holder->pid, " on host ", holder->host,
                 " holds this run and is silent; waiting up to ", kStaleSeconds, " s to see whether it lives"));
      }
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (++removals > 2 * kPatience) {
      throw Error(Blame::machine, text(lock.string(), ": cannot take the lock"), "remove that file");
    }
    remove_stale(lock, holder);
  }
  heartbeat_ = std::make_unique<Heartbeat>(paths_.lock());
}

RunFolder::~RunFolder() {
  heartbeat_.reset();
  try {
    if (read_lock(paths_.lock()) == self_) ::unlink(paths_.lock().c_str());
  } catch (const Error&) {  // no longer ours
  }
  if (made_) ::rmdir(paths_.root.c_str());  // fails unless it is empty
}

void RunFolder::ensure_held() const {
  const auto holder = read_lock(paths_.lock());
  if (holder == self_) return;
  ensure_there(paths_.root);
  if (!holder) {
    throw Error(Blame::machine,
                text(paths_.root.string(),
                     ": its lock is gone: the folder was removed, emptied or exchanged while the run "
                     "wrote to it"),
                "bring the folder back from a copy, or start over; the same command goes on from what is there");
  }
  throw Error(Blame::machine,
              text(paths_.root.string(), ": process ", holder->pid, " on host ", holder->host,
                   " took over this run while we stood still"),
              "let that one go on; this one stops without writing");
}

void ensure_there(const Path& root) {
  std::error_code silent;
  if (std::filesystem::status(root, silent).type() != std::filesystem::file_type::not_found) return;
  throw Error(Blame::machine, text(root.string(), " is gone: it was moved or removed while the run wrote to it"),
              "move it back; the same command goes on from its newest checkpoint");
}

std::optional<Holder> read_holder(const Path& root) {
  const Path lock = RunPaths{root}.lock();
  const auto holder = read_lock(lock);
  return holder && is_alive(*holder, lock) ? holder : std::nullopt;
}

RunPaths open_run(const Path& root) {
  RunPaths paths{root};
  if (!std::filesystem::is_directory(root)) {
    throw Error(Blame::user, text(root.string(), ": there is no such run folder"), "check the path: ls runs");
  }
  if (!std::filesystem::exists(paths.journal()) && !std::filesystem::exists(paths.job())) {
    throw Error(Blame::user, text(root.string(), ": this is not a run folder (no journal.jsonl, no job.json)"),
                "give the folder that `lockstep train` made");
  }
  return paths;
}

}  // namespace lockstep::run
