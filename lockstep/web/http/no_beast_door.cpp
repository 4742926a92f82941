// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/web/http/server.h"

namespace lockstep::web {

class Server::Inside {};

Server::Server(ServerOptions, Handler) {
  throw base::Error(base::Blame::machine, "this build has no HTTP server",
                    "install Boost 1.81 or newer and OpenSSL 3 (Debian: libboost1.81-dev libssl-dev) and build again");
}
Server::~Server() = default;
int Server::port() const {
  return 0;
}
std::string Server::url() const {
  return "";
}
int64_t Server::connections() const {
  return 0;
}
void Server::stop(std::chrono::milliseconds) {}

}  // namespace lockstep::web
