// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::measure {

// A program on the other side of two pipes that answers one line to each line.
class Peer {
 public:
  // Waits for its first line. Machine error, with what it wrote to standard error left on ours, when it ends instead.
  explicit Peer(const std::vector<std::string>& command);
  ~Peer();  // closes its input and waits for its end
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& greeting() const { return greeting_; }
  std::string ask(const std::string& line);

 private:
  std::string read_line();

  int child_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  std::string greeting_;
};

}  // namespace lockstep::measure
