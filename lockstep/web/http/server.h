// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/web/http/gate.h"
#include "lockstep/web/http/message.h"

namespace lockstep::web {

// Called once, now or later, from any thread; further calls and those behind the end of the server do nothing. When
// the last copy is gone without a call, the answer is 500.
using Answer = std::function<void(Response)>;
// Runs on the server's one thread: it must not wait. What it throws is the answer: 400 for a user's error, else 500
// without the words, which go to standard error.
using Handler = std::function<void(Request&&, const Answer&)>;

// One line of the access log. The query is left out: it may hold the token.
struct Access {
  std::string remote;
  std::string method;  // empty: no request could be read
  std::string path;
  int status = 0;
  int64_t received = 0;  // bytes of the body
  int64_t sent = 0;      // likewise
  double seconds = 0;    // from the end of the head to the end of the answer
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // to listen on
  int port = 0;                       // 0: any that is free
  Gate gate = {};
  base::Path certificate = {};  // with `key`: TLS, from 1.2 on; PEM files
  base::Path key = {};

  int64_t max_head = 16 << 10;              // bytes
  int64_t max_body = 64 << 20;              // of one request
  int64_t max_bodies = int64_t{512} << 20;  // of all requests under way
  int64_t max_connections = 2048;           // beyond, the one that has been idle longest goes
  // Each a limit of the whole, not of one read: a byte a second does not hold a connection. Whoever is too slow is
  // hung up on; the log has it as 408.
  std::chrono::milliseconds head_time{10000};
  std::chrono::milliseconds body_time{30000};
  std::chrono::milliseconds answer_time{60000};  // of the handler; then 504
  std::chrono::milliseconds write_time{30000};
  std::chrono::milliseconds idle_time{60000};

  std::function<void(const Access&)> log = {};  // on the server's thread
};

// An HTTP/1.1 server: one thread, any number of connections within the limits. Nobody who is slow, sends nonsense or
// sends too much keeps others waiting. Everything is ready when the constructor returns.
class Server {
 public:
  // Machine error when the port is taken or may not be used; or in a build without Boost.Beast and OpenSSL; user error
  // for a bad address, certificate or key.
  Server(ServerOptions options, Handler handler);
  ~Server();  // stop() without waiting
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  std::string url() const;  // "http://127.0.0.1:8000"
  int64_t connections() const;
  // Takes no more connections, lets requests under way end for as long as `drain`, closes the rest. Returns when the
  // thread has ended; the handler is not called any more.
  void stop(std::chrono::milliseconds drain);

 private:
  class Inside;
  std::shared_ptr<Inside> inside_;
};

}  // namespace lockstep::web
