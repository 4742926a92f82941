// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

const char* name(Blame blame) {
  switch (blame) {
    case Blame::user:
      return "user";
    case Blame::machine:
      return "machine";
    case Blame::bug:
      return "bug";
  }
  return "bug";
}

}  // namespace

Error::Error(Blame blame, const std::string& what, std::string fix)
    : std::runtime_error(what), blame_(blame), fix_(std::move(fix)) {}

std::string Error::message() const {
  std::string all = text("lockstep: ", name(blame_), blame_ == Blame::bug ? "" : " error", ": ", what());
  if (!fix_.empty()) all += "\n  fix: " + fix_;
  return all;
}

void ensure(bool holds, std::string_view promise, Where where) {
  if (holds) return;
  throw Error(Blame::bug, text("broken promise: ", promise, " (", where.file, ":", where.line, ")"),
              "please report this with the command that showed it");
}

void throw_errno(const std::string& what, std::string fix) {
  const int code = errno;
  throw Error(Blame::machine, text(what, ": ", std::strerror(code)), std::move(fix));
}

}  // namespace lockstep::base
