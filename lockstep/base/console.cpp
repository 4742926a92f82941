// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/console.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes at the end that the next piece may complete to a character.
size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto lead = static_cast<uint8_t>(text[text.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EAGAIN) {  // somebody else's end of this terminal has made it non-blocking
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (put < 0 && errno != EINTR) {
      return false;
    } else if (put > 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
    }
  }
  return true;
}

struct Stream {
  int descriptor;
  std::string rest = {};  // the beginning of a character
  int failure = 0;        // errno of the first write that failed
};

// stdio holds the stream's lock. 0: an error.
ssize_t write_harmless(void* cookie, const char* bytes, size_t size) {
  auto& stream = *static_cast<Stream*>(cookie);
  std::string all = std::exchange(stream.rest, {}) + std::string(bytes, size);
  stream.rest = all.substr(all.size() - unfinished(all));
  all.resize(all.size() - stream.rest.size());
  if (write_all(stream.descriptor, harmless(all))) return static_cast<ssize_t>(size);
  if (stream.failure == 0) stream.failure = errno;
  return 0;
}

// For as long as the process: what runs behind main() prints too.
Stream& standard(int descriptor) {
  static Stream streams[2]{{STDOUT_FILENO}, {STDERR_FILENO}};
  return streams[descriptor - STDOUT_FILENO];
}

void reopen_closed() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // Gets the lowest number that is free: this one.
    if (::open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) throw_errno("cannot open /dev/null");
  }
}

FILE* open_harmless(int descriptor, int buffering) {
  FILE* stream = ::fopencookie(&standard(descriptor), "w", {nullptr, write_harmless, nullptr, nullptr});
  if (stream) ::setvbuf(stream, nullptr, buffering, BUFSIZ);
  return stream;
}

// The escape of a character that turns the direction of what follows it: "gnp.exe" could be shown as "exe.png". Letters
// of scripts that are written from right to left turn by themselves and need none. Null: another character.
const char* turns_around(std::string_view sequence) {
  constexpr std::pair<std::string_view, const char*> kTurning[] = {
      {"\xE2\x80\xAA", "\\u202a"}, {"\xE2\x80\xAB", "\\u202b"}, {"\xE2\x80\xAC", "\\u202c"},
      {"\xE2\x80\xAD", "\\u202d"}, {"\xE2\x80\xAE", "\\u202e"}, {"\xE2\x81\xA6", "\\u2066"},
      {"\xE2\x81\xA7", "\\u2067"}, {"\xE2\x81\xA8", "\\u2068"}, {"\xE2\x81\xA9", "\\u2069"}};
  for (const auto& [turning, escape] : kTurning) {
    if (sequence == turning) return escape;
  }
  return nullptr;
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const std::string_view sequence = text.substr(at, length);
    const uint8_t first = static_cast<uint8_t>(text[at]);
    const bool c1 = length == 2 && first == 0xC2 && static_cast<uint8_t>(text[at + 1]) < 0xA0;
    if (length == 0) {
      out += kReplacement;
    } else if (const char* turning = turns_around(sequence)) {
      out += turning;
    } else if (c1 || first == 0x7F || (first < 0x20 && first != '\n' && first != '\t')) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c1 ? text[at + 1] & 0xFF : first));
      out += escaped;
    } else {
      out += sequence;
    }
    at += length == 0 ? 1 : length;
  }
  return out;
}

void open_console() {
  reopen_closed();
  FILE* out = open_harmless(STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF);
  FILE* err = open_harmless(STDERR_FILENO, _IONBF);
  if (!out || !err) throw_errno("cannot open the standard streams");
  stdout = out;
  stderr = err;
}

void check_output() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int code = standard(STDOUT_FILENO).failure;
  if (written || code == EPIPE) return;
  errno = code != 0 ? code : errno;
  throw_errno("cannot write to standard output", "free some space where it goes (df -h), or print it elsewhere");
}

}  // namespace lockstep::base
