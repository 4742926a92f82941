// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::tune {
namespace {

using base::text;

// What a launcher told us is not meant for the programs that we start: each is a world of its own.
bool is_launchers(std::string_view variable) {
  for (const std::string_view start : {"OMPI_COMM_", "PMIX_", "PMI_", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP"}) {
    if (variable.starts_with(start)) return true;
  }
  return false;
}

std::vector<std::string> make_environment(const std::vector<std::pair<std::string, std::string>>& set) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view words = *entry;
    const auto name = words.substr(0, words.find('='));
    const bool replaced = std::any_of(set.begin(), set.end(), [&](const auto& one) { return one.first == name; });
    if (!replaced && !is_launchers(name)) all.emplace_back(words);
  }
  for (const auto& [name, value] : set) all.push_back(text(name, "=", value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

void close_one(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Its ends are closed with it, but for those that somebody took.
class Pipe {
 public:
  Pipe(int read, int write) : read(read), write(write) {}
  ~Pipe() {
    close_one(read);
    close_one(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read;
  int write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) base::throw_errno("cannot make a pipe");
  return {ends[0], ends[1]};
}

Pipe make_input(bool is_written) {
  if (is_written) return make_pipe();
  return {::open("/dev/null", O_RDONLY | O_CLOEXEC), -1};
}

// To us, or to the end of a file.
Pipe make_output(const std::string& file) {
  if (file.empty()) return make_pipe();
  const int log = base::open_plain(file, O_WRONLY | O_CREAT | O_APPEND);
  if (log < 0) base::throw_errno(text("cannot write ", file));
  return {-1, log};
}

// Behind vfork(), before exec(): only calls that are safe there.
void become(const ChildOptions& options, pid_t parent, int in, int out, int err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (::getppid() != parent) ::_exit(126);
  if (!options.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : options.cores) CPU_SET(static_cast<size_t>(core), &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  if (options.most_file > 0) {
    const struct rlimit limit { static_cast<rlim_t>(options.most_file), static_cast<rlim_t>(options.most_file) };
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Without a copy of this process, whose memory holds a whole study: it stands still until the child has its program.
// No signal may come in between, whose handler would write into the memory of both.
pid_t start_process(const ChildOptions& options, char* const* arguments, char* const* variables, int in, int out,
                    int err) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t child = ::vfork();
  if (child == 0) {
    become(options, parent, in, out, err);
    ::execvpe(arguments[0], arguments, variables);
    const char* why = std::strerror(errno);
    if (::write(2, why, std::strlen(why)) < 0) ::_exit(126);
    ::_exit(127);
  }
  const int code = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = code;
  return child;
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const ChildOptions& options) : options_(options) {
  base::ensure(!words.empty(), "a program has a name");
  std::vector<std::string> copy = words;
  std::vector<std::string> environment = make_environment(options.environment);
  const auto arguments = pointers(copy);
  const auto variables = pointers(environment);
  Pipe in = make_input(options.has_input);
  Pipe out = make_output(options.output);
  Pipe err = make_output(options.output);
  pid_ = start_process(options, arguments.data(), variables.data(), in.read, out.write, err.write);
  if (pid_ < 0) base::throw_errno(text("cannot start ", words[0]), "too many processes? ulimit -u");
  in_ = std::exchange(in.write, -1);
  out_ = std::exchange(out.read, -1);
  err_ = std::exchange(err.read, -1);
  for (const int end : {out_, err_}) {
    if (end >= 0) ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  end_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  begun_ = base::steady_seconds();
}

Child::~Child() {
  if (!ended_ && pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_one(in_);
  close_one(out_);
  close_one(err_);
  close_one(end_);
}

void Child::read_output() {
  char piece[1 << 14];
  ssize_t got = 0;
  while (out_ >= 0 && (got = ::read(out_, piece, sizeof piece)) > 0) {
    printed_ += got;
    if (printed_ <= options_.most_output) text_.append(piece, static_cast<size_t>(got));
    if (printed_ > options_.most_output && trouble_.empty()) {
      kill_now(text("printed more than ", base::format_bytes(static_cast<double>(options_.most_output))));
      return;
    }
  }
  if (got == 0) close_one(out_);
}

void Child::read_errors() {
  constexpr size_t kKept = 2000;
  char piece[1 << 14];
  ssize_t got = 0;
  while (err_ >= 0 && (got = ::read(err_, piece, sizeof piece)) > 0) {
    errors_.append(piece, static_cast<size_t>(got));
    if (errors_.size() > 2 * kKept) errors_.erase(0, errors_.size() - kKept);
  }
  if (got == 0) close_one(err_);
}

bool Child::poll() {
  if (ended_) return true;
  read_output();
  read_errors();
  if (options_.output.empty() && out_ < 0 && err_ < 0 && !closed_) closed_ = base::steady_seconds();
  if (options_.time_limit > 0 && trouble_.empty() && base::steady_seconds() - begun_ > options_.time_limit) {
    kill_now(text("took more than ", base::format_duration(options_.time_limit)));
  }
  int status = 0;
  const pid_t done = ::waitpid(pid_, &status, WNOHANG);
  if (done == 0) return false;
  ended_ = true;
  ::kill(-pid_, SIGKILL);  // whoever it left behind
  read_output();
  read_errors();
  code_ = done < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (trouble_.empty() && code_ == 128 + SIGXFSZ) {
    trouble_ = text("wrote more than ", base::format_bytes(static_cast<double>(options_.most_file)), " into one file");
  }
  if (trouble_.empty() && code_ != 0) {
    const std::string_view last = base::trim(errors_);
    trouble_ = text(code_ > 128 ? text("ended by signal ", code_ - 128) : text("exit code ", code_),
                    last.empty() ? "" : ": ", last.substr(last.rfind('\n') + 1));
  }
  return true;
}

std::vector<std::string> Child::take_lines() {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
    lines.push_back(text_.substr(begin, end - begin));
    begin = end + 1;
  }
  text_.erase(0, begin);
  if (ended_ && !text_.empty()) lines.push_back(std::exchange(text_, ""));
  return lines;
}

// A reader that is gone shall not send this process SIGPIPE, which others take for a request to stop.
bool Child::write_line(std::string_view line) {
  const std::string whole = text(line, "\n");
  sigset_t pipe_signal;
  sigset_t before;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  size_t written = 0;
  bool broken = in_ < 0;
  while (!broken && written < whole.size()) {
    const ssize_t put = ::write(in_, whole.data() + written, whole.size() - written);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const struct timespec now {};
      if (errno == EPIPE) ::sigtimedwait(&pipe_signal, nullptr, &now);
      broken = true;
    } else {
      written += static_cast<size_t>(put);
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return !broken;
}

void Child::restart_clock() {
  begun_ = base::steady_seconds();
  printed_ = 0;
}

void Child::send(int signal) const {
  if (!ended_ && pid_ > 0) ::kill(pid_, signal);
}

void Child::kill_now(const std::string& why) {
  if (trouble_.empty()) trouble_ = why;
  if (!ended_ && pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
  }
}

// A kernel before 5.3 does not say when a process ends. One that has closed its output is about to: it is looked at
// soon, and then after as long as it has been waited for, so that one that goes on costs little.
void wait_for(const std::vector<const Child*>& children, double seconds) {
  constexpr double kSoon = 0.001;
  std::vector<struct pollfd> watched;
  for (const Child* child : children) {
    if (child->end_descriptor() >= 0 || !child->closed()) continue;
    seconds = std::min(seconds, std::max(kSoon, base::steady_seconds() - *child->closed()));
  }
  for (const Child* child : children) {
    for (const int one : {child->output_descriptor(), child->error_descriptor(), child->end_descriptor()}) {
      if (one >= 0) watched.push_back({one, POLLIN, 0});
    }
  }
  ::poll(watched.data(), watched.size(), static_cast<int>(seconds * 1000));
}

std::vector<std::string> fill_in(const std::vector<std::string>& words,
                                 const std::vector<std::pair<std::string, std::string>>& values, bool* found) {
  std::vector<std::string> filled = words;
  for (auto& word : filled) {
    for (const auto& [name, value] : values) {
      const std::string marker = text("{", name, "}");
      for (size_t at = word.find(marker); at != std::string::npos; at = word.find(marker, at + value.size())) {
        word.replace(at, marker.size(), value);
        if (found) *found = true;
      }
    }
  }
  return filled;
}

}  // namespace lockstep::tune
