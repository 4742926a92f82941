// SPDX-License-Identifier: Apache-2.0
// Preloaded into a launcher and its ranks when all of them are on this host (site/interface.h): what would listen on
// every interface listens on the loopback one. Open MPI 4.1 has no setting for it: its parameters name the interfaces
// to use, and it binds to all of them.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace {

bool is_stream(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int bind(int socket, const sockaddr* address, socklen_t size) {
  using Bind = int(int, const sockaddr*, socklen_t);
  static Bind* const next = reinterpret_cast<Bind*>(::dlsym(RTLD_NEXT, "bind"));
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (address && address->sa_family == AF_INET && size >= sizeof four && is_stream(socket)) {
    std::memcpy(&four, address, sizeof four);
    if (four.sin_addr.s_addr == htonl(INADDR_ANY)) {
      four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      return next(socket, reinterpret_cast<const sockaddr*>(&four), sizeof four);
    }
  }
  if (address && address->sa_family == AF_INET6 && size >= sizeof six && is_stream(socket)) {
    std::memcpy(&six, address, sizeof six);
    if (IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) {
      six.sin6_addr = in6addr_loopback;
      return next(socket, reinterpret_cast<const sockaddr*>(&six), sizeof six);
    }
  }
  return next(socket, address, size);
}
