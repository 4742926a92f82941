// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::tune {

struct ChildOptions {
  std::vector<std::pair<std::string, std::string>> environment = {};  // set on top of ours
  std::vector<int> cores = {};                                        // it may use these alone; empty: as we do
  int death_signal = 9;                                               // what it gets when this process dies
  std::string output = {};               // a file that takes both of its streams, appended; empty: pipes to us
  double time_limit = 0;                 // seconds; 0: none
  int64_t most_output = 1 << 20;         // bytes on standard output, beyond which it is killed
  int64_t most_file = int64_t{1} << 30;  // bytes of any file that it writes; 0: as the system allows
  bool has_input = false;                // we write to its standard input
};

// Another program, started in a process group of its own, which ends with this object.
class Child {
 public:
  Child(const std::vector<std::string>& words, const ChildOptions& options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Takes what it printed and looks whether it is over; never waits.
  bool poll();
  bool ended() const { return ended_; }
  int code() const { return code_; }                       // exit code, 128 + signal; 127: could not be started
  const std::string& trouble() const { return trouble_; }  // why it was killed, or what its last words were
  std::vector<std::string> take_lines();                   // whole lines of its standard output since the last call
  bool write_line(std::string_view line);                  // false: it does not read
  void restart_clock();                                    // of the time limit
  void send(int signal) const;
  void kill_now(const std::string& why);
  pid_t pid() const { return pid_; }
  int output_descriptor() const { return out_; }  // -1: closed
  int error_descriptor() const { return err_; }   // likewise
  int end_descriptor() const { return end_; }     // readable when it is over; -1: the kernel has none
  // When it closed the pipes to us, in steady seconds.
  const std::optional<double>& closed() const { return closed_; }

 private:
  void read_output();
  void read_errors();

  ChildOptions options_;
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  int end_ = -1;
  double begun_ = 0;
  std::optional<double> closed_;
  bool ended_ = false;
  int code_ = 0;
  int64_t printed_ = 0;
  std::string text_;    // of standard output, not yet taken
  std::string errors_;  // the end of standard error
  std::string trouble_;
};

// Sleeps until one of them prints or ends, at most for so long.
void wait_for(const std::vector<const Child*>& children, double seconds);

// "./simulate {a} {b}" with the values put in; names in braces that have none stay. True in `found` when there was one.
std::vector<std::string> fill_in(const std::vector<std::string>& words,
                                 const std::vector<std::pair<std::string, std::string>>& values, bool* found = nullptr);

}  // namespace lockstep::tune
