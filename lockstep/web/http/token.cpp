// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kTokenDigits = 64;

// Closes what it holds at the end of the scope.
struct OpenFile {
  int descriptor;
  explicit OpenFile(int opened) : descriptor(opened) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

void check_privacy(int descriptor, const base::Path& file) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) base::throw_errno(text("cannot look at ", file.string()));
  if (found.st_uid != ::geteuid()) {
    throw Error(Blame::user, text(file.string(), ": the token's file belongs to another user"), "name another file");
  }
  if ((found.st_mode & 077) != 0) {
    throw Error(Blame::user, text(file.string(), ": others may read or write the token's file"),
                "chmod 600 " + base::shell_path(file.string()) + ", after removing a token that others have seen");
  }
}

std::string read_token(int descriptor, const base::Path& file) {
  std::string content(kTokenDigits + 2, '\0');
  const ssize_t got = ::read(descriptor, content.data(), content.size());
  if (got < 0) base::throw_errno(text("cannot read ", file.string()));
  content.resize(static_cast<size_t>(got));
  std::string token(base::trim(content));
  const bool is_token =
      token.size() == kTokenDigits && token.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_token) {
    throw Error(Blame::user, text(file.string(), ": this is no token (64 hexadecimal digits)"),
                "remove the file, a new token is made; or name another file");
  }
  return token;
}

}  // namespace

std::string random_token() {
  std::array<uint8_t, kTokenDigits / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    base::throw_errno("cannot get random bytes");
  }
  std::string token;
  for (const uint8_t byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

std::string token_in(const base::Path& file) {
  {
    const OpenFile there(base::open_plain(file, O_RDONLY));
    if (there.descriptor >= 0) {
      check_privacy(there.descriptor, file);
      return read_token(there.descriptor, file);
    }
    if (errno != ENOENT) base::throw_errno(text("cannot read the token's file ", file.string()));
  }
  // O_EXCL: whoever else makes it at the same time, one token counts.
  const OpenFile made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made.descriptor < 0) base::throw_errno(text("cannot write the token's file ", file.string()));
  if (::fchmod(made.descriptor, 0600) != 0) base::throw_errno(text("cannot protect ", file.string()));
  std::string token = random_token();
  const std::string line = token + "\n";
  if (::write(made.descriptor, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    base::throw_errno(text("cannot write the token's file ", file.string()));
  }
  return token;
}

}  // namespace lockstep::web
