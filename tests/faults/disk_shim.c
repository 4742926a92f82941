// SPDX-License-Identifier: Apache-2.0
// A library to preload before a program: of the calls that change what lies below the folders whose paths hold SHIM_UNDER
// ("/checkpoints" unless it is set), the one number SHIM_AT goes wrong as SHIM_HOW says: "kill" ends the process there and then, "torn" likewise after
// half of a write or right behind another call; "enospc" and "eio" fail that call only, "enospc-on" and "eio-on" that
// one and all later ones. SHIM_COUNT names a file to which each such call adds a line with its name, so that a first
// run tells how many there are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long calls;

static int inside(const char* path) {
  const char* under = getenv("SHIM_UNDER");
  return path && strstr(path, under ? under : "/checkpoints") != NULL;
}

static int inside_fd(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return inside(path);
}

// Counts a call: 0 go on, 1 fail with errno set, 2 die after (half of) it.
static int decide(const char* name) {
  const char* how = getenv("SHIM_HOW");
  const char* at = getenv("SHIM_AT");
  const char* count = getenv("SHIM_COUNT");
  pthread_mutex_lock(&mutex);
  const long number = calls++;
  pthread_mutex_unlock(&mutex);
  if (count) {
    static int (*real_open)(const char*, int, ...);
    static ssize_t (*real_write)(int, const void*, size_t);
    if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
    if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
    const int fd = real_open(count, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd >= 0) {
      char line[64];
      const int size = snprintf(line, sizeof line, "%s\n", name);
      if (real_write(fd, line, (size_t)size) != size) abort();
      close(fd);
    }
  }
  if (!how || !at) return 0;
  const long wanted = atol(at);
  const int on = strstr(how, "-on") != NULL;
  if (on ? number < wanted : number != wanted) return 0;
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "torn") == 0) return 2;
  errno = strncmp(how, "eio", 3) == 0 ? EIO : ENOSPC;
  return 1;
}

static void die(void) { kill(getpid(), SIGKILL); }

#define ONE_WRITE(name, parameters, half, arguments)                                    \
  ssize_t name parameters {                                                             \
    static ssize_t(*real) parameters;                                                   \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                          \
    const int verdict = inside_fd(fd) ? decide(#name) : 0;                               \
    if (verdict == 0) return real arguments;                                            \
    if (size > 1 && real half < 0) return -1; /* half of it reaches the disk either way */ \
    if (verdict == 2) die();                                                            \
    return -1;                                                                          \
  }

ONE_WRITE(write, (int fd, const void* bytes, size_t size), (fd, bytes, size / 2), (fd, bytes, size))
ONE_WRITE(pwrite, (int fd, const void* bytes, size_t size, off_t at), (fd, bytes, size / 2, at), (fd, bytes, size, at))
ONE_WRITE(pwrite64, (int fd, const void* bytes, size_t size, off_t at), (fd, bytes, size / 2, at), (fd, bytes, size, at))

#define ONE_CALL(name, parameters, arguments, is_inside)  \
  int name parameters {                                   \
    static int(*real) parameters;                         \
    if (!real) real = dlsym(RTLD_NEXT, #name);            \
    const int verdict = (is_inside) ? decide(#name) : 0;   \
    if (verdict == 1) return -1;                          \
    const int result = real arguments;                    \
    if (verdict == 2) die();                              \
    return result;                                        \
  }

// What a save or a preparation uses, and what they could come to use.
ONE_CALL(fsync, (int fd), (fd), inside_fd(fd))
ONE_CALL(syncfs, (int fd), (fd), inside_fd(fd))
ONE_CALL(fdatasync, (int fd), (fd), inside_fd(fd))
ONE_CALL(ftruncate, (int fd, off_t size), (fd, size), inside_fd(fd))
ONE_CALL(truncate, (const char* path, off_t size), (path, size), inside(path))
ONE_CALL(rename, (const char* from, const char* to), (from, to), inside(to))
ONE_CALL(renameat2, (int folder, const char* from, int other, const char* to, unsigned flags),
         (folder, from, other, to, flags), inside(to) || inside_fd(other))
ONE_CALL(renameat, (int folder, const char* from, int other, const char* to), (folder, from, other, to),
         inside(to) || inside_fd(other))
ONE_CALL(unlinkat, (int folder, const char* path, int flags), (folder, path, flags), inside(path) || inside_fd(folder))
ONE_CALL(unlink, (const char* path), (path), inside(path))
ONE_CALL(rmdir, (const char* path), (path), inside(path))
ONE_CALL(remove, (const char* path), (path), inside(path))
ONE_CALL(link, (const char* from, const char* to), (from, to), inside(to))
ONE_CALL(symlink, (const char* from, const char* to), (from, to), inside(to))
ONE_CALL(mkdir, (const char* path, mode_t mode), (path, mode), inside(path))
ONE_CALL(mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), inside(path) || inside_fd(folder))

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  static int (*real)(int, const char*, int, ...);
  if (!real) real = dlsym(RTLD_NEXT, "openat");
  const int verdict = (flags & (O_CREAT | O_TRUNC)) && (inside(path) || inside_fd(folder)) ? decide("open") : 0;
  if (verdict == 1) return -1;
  const int fd = real(folder, path, flags, mode);
  if (verdict == 2) die();
  return fd;
}

#define ONE_OPEN(name, parameters, folder)                       \
  int name parameters {                                          \
    va_list rest;                                                \
    va_start(rest, flags);                                       \
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                \
    return open_at(folder, path, flags, mode);                   \
  }

ONE_OPEN(open, (const char* path, int flags, ...), AT_FDCWD)
ONE_OPEN(open64, (const char* path, int flags, ...), AT_FDCWD)
ONE_OPEN(openat, (int folder, const char* path, int flags, ...), folder)
ONE_OPEN(openat64, (int folder, const char* path, int flags, ...), folder)
