// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/console.h"

namespace lockstep::base {
namespace {

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S", &parts);
  return buffer;
}

// At most `width` code points; a cut line would wrap and then could not be overwritten.
std::string fit(std::string_view line, int width) {
  int points = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xC0) == 0x80) continue;
    if (++points > width) return std::string(line.substr(0, i));
  }
  return std::string(line);
}

}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (options_.every_seconds <= 0) options_.every_seconds = options_.terminal ? 0.1 : 10;
  if (!options_.clock) options_.clock = steady_seconds;
}

Progress::~Progress() {
  end();
}

void Progress::end() {
  if (!pending_.empty()) print(std::exchange(pending_, {}));  // the last word is not throttled away
  if (!shown_.empty()) write("\n");
  shown_.clear();
}

void Progress::show(std::string_view given) {
  const std::string line = harmless(given);
  const double now = options_.clock();
  if (now - last_ < options_.every_seconds) {
    pending_ = line;
    return;
  }
  last_ = now;
  pending_.clear();
  if (!options_.terminal) {
    write(time_stamp() + "  " + line + "\n");
    return;
  }
  shown_ = fit(line, options_.width - 1);
  write("\r" + shown_ + "\x1b[K");
}

void Progress::print(std::string_view given) {
  const std::string line = harmless(given);
  if (!options_.terminal) {
    write(time_stamp() + "  " + line + "\n");
    return;
  }
  clear_line();
  write(line + "\n");
}

void Progress::clear_line() {
  if (shown_.empty()) return;
  write("\r\x1b[K");
  shown_.clear();
  last_ = -1e300;  // the next show() redraws at once
}

void Progress::write(std::string_view bytes) const {
  if (options_.out) return options_.out(bytes);
  std::fflush(stderr);
  while (!bytes.empty()) {  // not through `stderr`, which lets no cursor movement pass
    const ssize_t put = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) return;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(put, 0)));
  }
}

ProgressOptions progress_for_stderr() {
  ProgressOptions options;
  options.terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (options.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = size.ws_col;
  return options;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  char buffer[64];
  if (seconds < 9.95) {
    std::snprintf(buffer, sizeof buffer, "%.1f s", seconds);
    return buffer;
  }
  const auto whole = static_cast<long long>(std::min(seconds + 0.5, 1e15));
  if (whole < 60) {
    std::snprintf(buffer, sizeof buffer, "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return buffer;
}

}  // namespace lockstep::base
