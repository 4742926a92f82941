// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep::base {

enum class Blame { user = 2, machine = 3, bug = 4 };  // who must act; also the exit code

constexpr int kExitDone = 0;
constexpr int kExitRequeue = 85;  // "requeue me": stopped in time, everything saved

// The one exception of the program: who must act, what happened and where, and the fix.
class Error : public std::runtime_error {
 public:
  Error(Blame blame, const std::string& what, std::string fix = "");
  Blame blame() const { return blame_; }
  const std::string& fix() const { return fix_; }
  int exit_code() const { return static_cast<int>(blame_); }
  // "lockstep: user error: <what>\n  fix: <fix>"
  std::string message() const;

 private:
  Blame blame_;
  std::string fix_;
};

struct Where {  // std::source_location breaks clang-tidy 14
  const char* file;
  int line;
  static constexpr Where here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) { return {f, l}; }
};

// Throws a `bug` unless `holds`. For promises between our own parts, never for input.
void ensure(bool holds, std::string_view promise, Where where = Where::here());

// `machine` error naming the failed call's errno, e.g. "cannot write x: No space left on device".
[[noreturn]] void throw_errno(const std::string& what, std::string fix = "");

}  // namespace lockstep::base
