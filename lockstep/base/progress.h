// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::base {

struct ProgressOptions {
  bool terminal = false;                      // one updating line; otherwise plain lines with a time stamp, for logs
  int width = 80;                             // columns of the terminal
  double every_seconds = 0;                   // between two lines; 0: 0.1 on a terminal, 10 in a log
  std::function<double()> clock;              // seconds, monotonic; empty: the steady clock
  std::function<void(std::string_view)> out;  // where the bytes go; empty: standard error
};

// The progress line of a long operation. show() may be called at any rate: it writes only when it is time.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // as end()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view line);
  void print(std::string_view line);  // a line that stays, at once
  void end();                         // the last line shown stays; what follows starts a new one

 private:
  void write(std::string_view bytes) const;
  void clear_line();

  ProgressOptions options_;
  double last_ = -1e300;
  std::string shown_;    // what stands on the terminal's line
  std::string pending_;  // given to show() and not yet written
};

// For standard error as it is: a terminal or not, and its width.
ProgressOptions progress_for_stderr();

// "1:02:03", "2:05", "12 s", "0.4 s".
std::string duration_text(double seconds);

}  // namespace lockstep::base
