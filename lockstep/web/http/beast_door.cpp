// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread.h"
#include "lockstep/web/http/beast_connection.h"
#include "lockstep/web/http/server.h"

namespace lockstep::web {
namespace {

using asio::ip::tcp;
using base::Blame;
using base::Error;
using base::text;
using std::chrono::milliseconds;

constexpr milliseconds kNoDescriptor{50};  // until accepting is tried again when no descriptor is free

asio::ssl::context tls_context(const ServerOptions& options) {
  asio::ssl::context context(asio::ssl::context::tls_server);
  const auto check = [](const Failure& failure, const base::Path& file, const char* fix) {
    if (failure) throw Error(Blame::user, text(file.string(), ": ", failure.message()), fix);
  };
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  Failure failure;
  context.use_certificate_chain_file(options.certificate.string(), failure);
  check(failure, options.certificate, "a PEM file with the server's certificate and those above it is expected");
  context.use_private_key_file(options.key.string(), asio::ssl::context::pem, failure);
  check(failure, options.key, "a PEM file with the private key of the certificate, without a passphrase, is expected");
  return context;
}

// As many connections as asked for need as many descriptors.
void raise_descriptor_limit(int64_t connections) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, static_cast<rlim_t>(connections) + 256);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

// Everything but `stop` and `port` happens on its one thread.
class Server::Inside : public std::enable_shared_from_this<Server::Inside> {
 public:
  Inside(ServerOptions options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)), acceptor_(io_), pause_(io_) {
    if (!options_.certificate.empty()) tls_.emplace(tls_context(options_));
    options_.gate.is_tls = tls_.has_value();
    raise_descriptor_limit(options_.max_connections);
    listen();
  }

  void run() {
    accept();
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "http");
      base::leave_signals_to_others();
      io_.run();
    });
  }

  void stop(milliseconds drain) {
    if (!thread_.joinable()) return;
    asio::post(io_, [this, drain] {
      Failure ignored;
      is_draining_ = true;
      acceptor_.close(ignored);
      pause_.cancel();
      for (auto* connection : std::set(connections_)) {
        if (connection->idle_since()) connection->close();
      }
      if (connections_.empty()) return;
      pause_.expires_after(drain);
      pause_.async_wait([this](const Failure& failure) {
        if (failure) return;  // all of them ended
        for (auto* connection : std::set(connections_)) connection->close();
      });
    });
    thread_.join();
  }

  int port() const { return port_; }
  std::string url() const {
    const bool is_six = options_.address.find(':') != std::string::npos;
    return text(tls_ ? "https://" : "http://", is_six ? "[" : "", options_.address, is_six ? "]" : "", ":", port_);
  }
  int64_t connections() const { return num_connections_; }

  const ServerOptions& options() const { return options_; }
  asio::io_context& io() { return io_; }
  bool is_draining() const { return is_draining_; }

  // Room for a body of that size; true: it is taken until give_back().
  bool take(int64_t bytes) {
    if (bytes > options_.max_bodies - held_) return false;
    held_ += bytes;
    return true;
  }
  void give_back(int64_t bytes) { held_ -= bytes; }

  void add(Connection* connection) {
    connections_.insert(connection);
    num_connections_ = static_cast<int64_t>(connections_.size());
  }
  void remove(Connection* connection) {
    connections_.erase(connection);
    num_connections_ = static_cast<int64_t>(connections_.size());
    if (is_draining_ && connections_.empty()) pause_.cancel();
  }

  void log(const Access& access) const {
    if (options_.log) options_.log(access);
  }

  void handle(Request&& request, uint64_t number, const std::weak_ptr<Connection>& from);

 private:
  void listen() {
    Failure failure;
    const auto address = asio::ip::make_address(options_.address, failure);
    if (failure) {
      throw Error(Blame::user, text(options_.address, ": not an address to listen on"),
                  "a number is expected: 127.0.0.1 (this machine alone), 0.0.0.0 (all networks)");
    }
    if (options_.port < 0 || options_.port > 65535) throw Error(Blame::user, text(options_.port, ": not a port"));
    const tcp::endpoint endpoint(address, static_cast<uint16_t>(options_.port));
    acceptor_.open(endpoint.protocol(), failure);
    if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor_.bind(endpoint, failure);
    if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
    if (failure) {
      throw Error(Blame::machine,
                  text("cannot listen on ", options_.address, " port ", options_.port, ": ", failure.message()),
                  "another program may have it: choose another port, or 0 for any that is free");
    }
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept([this](const Failure& failure, tcp::socket socket) {
      if (is_draining_ || failure == asio::error::operation_aborted) return;
      if (failure) {  // no descriptor is free: one may be soon
        pause_.expires_after(kNoDescriptor);
        pause_.async_wait([this](const Failure&) {
          if (!is_draining_) accept();
        });
        return;
      }
      if (static_cast<int64_t>(connections_.size()) >= options_.max_connections) close_longest_idle();
      if (static_cast<int64_t>(connections_.size()) < options_.max_connections) admit(std::move(socket));
      accept();
    });
  }

  void close_longest_idle() {
    Connection* longest = nullptr;
    double since = std::numeric_limits<double>::infinity();
    for (auto* connection : connections_) {
      const auto idle = connection->idle_since();
      if (idle && *idle < since) longest = connection, since = *idle;
    }
    if (longest) longest->close();
  }

  void admit(tcp::socket socket);

  asio::io_context io_{1};  // the first member: connections that are left end with it
  ServerOptions options_;
  Handler handler_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::optional<asio::ssl::context> tls_;
  std::set<Connection*> connections_;
  std::atomic<int64_t> num_connections_ = 0;
  int64_t held_ = 0;
  int port_ = 0;
  bool is_draining_ = false;
  std::thread thread_;
};

void Server::Inside::handle(Request&& request, uint64_t number, const std::weak_ptr<Connection>& from) {
  const auto reply = std::make_shared<Reply<Inside>>(weak_from_this(), from, number);
  const auto fail = [&](const char* why) {
    std::fprintf(stderr, "a request failed: %s\n", why);
    reply->give(error_response(500, "the server failed; its log has why"));
  };
  try {
    handler_(std::move(request), [reply](Response response) { reply->give(std::move(response)); });
  } catch (const Error& error) {
    if (error.blame() != Blame::user) return fail(error.what());
    reply->give(error_response(400, error.what()));
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void Server::Inside::admit(tcp::socket socket) {
  if (tls_) {
    std::make_shared<ConnectionOver<SecureStream, Inside>>(*this, SecureStream(std::move(socket), *tls_))->start();
  } else {
    std::make_shared<ConnectionOver<beast::tcp_stream, Inside>>(*this, beast::tcp_stream(std::move(socket)))->start();
  }
}

Server::Server(ServerOptions options, Handler handler)
    : inside_(std::make_shared<Inside>(std::move(options), std::move(handler))) {
  inside_->run();
}
Server::~Server() {
  stop(milliseconds(0));
}
int Server::port() const {
  return inside_->port();
}
std::string Server::url() const {
  return inside_->url();
}
int64_t Server::connections() const {
  return inside_->connections();
}
void Server::stop(milliseconds drain) {
  inside_->stop(drain);
}

}  // namespace lockstep::web
