// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program: counts every look-up by name and tells the sum at the end, on standard error.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace {
std::atomic<long> g_num_calls = 0;

template <class Function>
Function* next_of(const char* name) {
  ++g_num_calls;
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

__attribute__((destructor)) void tell() {
  std::fprintf(stderr, "path calls: %ld\n", g_num_calls.load());
}

mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(rest, int)) : 0;
}
}  // namespace

extern "C" {
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return next_of<int(const char*, int, ...)>("open")(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return next_of<int(const char*, int, ...)>("open64")(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return next_of<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}
int stat(const char* path, struct stat* into) noexcept {
  return next_of<int(const char*, struct stat*)>("stat")(path, into);
}
int lstat(const char* path, struct stat* into) noexcept {
  return next_of<int(const char*, struct stat*)>("lstat")(path, into);
}
int fstatat(int folder, const char* path, struct stat* into, int flags) noexcept {
  return next_of<int(int, const char*, struct stat*, int)>("fstatat")(folder, path, into, flags);
}
int access(const char* path, int mode) noexcept {
  return next_of<int(const char*, int)>("access")(path, mode);
}
}
