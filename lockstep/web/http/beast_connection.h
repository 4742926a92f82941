// SPDX-License-Identifier: Apache-2.0
#pragma once

// Part of the door: beast_door.cpp alone includes it. Boost.Beast frames bodies and writes responses, Asio moves the
// bytes; heads are ours (head.h), because Beast takes what smuggles requests through a proxy (other codings than
// "chunked", folded fields, a Content-Length twice).

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"
#include "lockstep/web/http/head.h"
#include "lockstep/web/http/server.h"

namespace lockstep::web {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Failure = beast::error_code;
using SecureStream = beast::ssl_stream<beast::tcp_stream>;

constexpr size_t kBuffer = size_t{64} << 10;          // of a connection while it reads
constexpr std::chrono::milliseconds kFarewell{2000};  // how long a refused client may still send until we hang up
constexpr size_t kMaxChunkExtension = 256;            // nobody uses them but to waste our time

// What a connection is to the server.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void start() = 0;
  virtual void answer(uint64_t request, Response response) = 0;
  virtual void close() = 0;
  virtual std::optional<double> idle_since() const = 0;  // none: a request is under way
};

// What an Answer holds: where the response goes. Connections are touched on the server's thread alone.
template <class Inside>
class Reply {
 public:
  Reply(std::weak_ptr<Inside> inside, std::weak_ptr<Connection> connection, uint64_t request)
      : inside_(std::move(inside)), connection_(std::move(connection)), request_(request) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply() { give(error_response(500, "nobody answered")); }

  void give(Response response) {
    if (is_given_.exchange(true)) return;
    const auto inside = inside_.lock();
    if (!inside) return;
    asio::dispatch(inside->io(),
                   [connection = connection_, request = request_, response = std::move(response)]() mutable {
                     if (const auto there = connection.lock()) there->answer(request, std::move(response));
                   });
  }

 private:
  std::weak_ptr<Inside> inside_;
  std::weak_ptr<Connection> connection_;
  uint64_t request_;
  std::atomic<bool> is_given_ = false;
};

// One client: requests one after the other, each read whole, answered, logged.
template <class Stream, class Inside>
class ConnectionOver : public Connection, public std::enable_shared_from_this<ConnectionOver<Stream, Inside>> {
 public:
  ConnectionOver(Inside& inside, Stream stream)
      : inside_(inside), stream_(std::move(stream)), buffer_(kBuffer), patience_(inside.io()) {
    Failure failure;
    const auto endpoint = lowest().socket().remote_endpoint(failure);
    if (!failure) remote_ = endpoint.address().to_string();
    lowest().socket().set_option(asio::ip::tcp::no_delay(true), failure);
    inside_.add(this);
  }
  ~ConnectionOver() override {
    release_body();
    inside_.remove(this);
  }
  ConnectionOver(const ConnectionOver&) = delete;
  ConnectionOver& operator=(const ConnectionOver&) = delete;

  void start() override {
    if constexpr (std::is_same_v<Stream, SecureStream>) {
      lowest().expires_after(options().head_time);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](const Failure& failure) {
                                if (!failure) self->wait_for_request();
                              });
    } else {
      wait_for_request();
    }
  }

  void answer(uint64_t request, Response response) override {
    if (request != request_ || !is_waiting_) return;
    is_waiting_ = false;
    patience_.cancel();
    write(std::move(response), head_.keep_alive && !inside_.is_draining() ? After::next : After::close);
  }

  void close() override {
    Failure ignored;
    inside_.remove(this);
    patience_.cancel();
    lowest().socket().close(ignored);
  }

  std::optional<double> idle_since() const override { return idle_since_; }

 private:
  enum class After { next, close, hear_out };  // the last: what a refused client still sends is read and dropped

  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }
  const ServerOptions& options() const { return inside_.options(); }

  void wait_for_request() {
    if (inside_.is_draining()) return say_goodbye();
    if (buffer_.size() > 0) return read_head_bytes();
    buffer_.shrink_to_fit();  // a thousand idle connections hold next to nothing
    idle_since_ = base::steady_seconds();
    lowest().expires_after(options().idle_time);
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = this->shared_from_this()](const Failure& failure, size_t got) {
                              self->idle_since_.reset();
                              if (failure) return;
                              self->buffer_.commit(got);
                              self->read_head_bytes();
                            });
  }

  void read_head_bytes() {
    head_ = Head{};
    access_ = Access{};
    access_.remote = remote_;
    started_ = base::steady_seconds();
    lowest().expires_after(options().head_time);
    asio::async_read_until(stream_, buffer_, "\r\n\r\n",
                           [self = this->shared_from_this()](const Failure& failure, size_t bytes) {
                             if (failure == asio::error::not_found) return self->refuse({431, "the head is too long"});
                             if (failure == beast::error::timeout) return self->give_up();
                             if (failure) return;
                             self->take_head(bytes);
                           });
  }

  void take_head(size_t bytes) {
    if (static_cast<int64_t>(bytes) > options().max_head) return refuse({431, "the head is too long"});
    const std::string raw(static_cast<const char*>(buffer_.data().data()), bytes);
    buffer_.consume(bytes);
    started_ = base::steady_seconds();
    auto [head, refusal] = read_head(raw);
    if (!head) return refuse(refusal);
    head_ = std::move(*head);
    access_.method = head_.method;
    access_.path = head_.path;
    if (auto response = refuse_at(options().gate, head_)) {
      const bool stays = response->status < 400 && head_.keep_alive && !head_.has_body();
      return write(std::move(*response), stays ? After::next : After::hear_out);
    }
    if (head_.content_length.value_or(0) > options().max_body) return refuse_size();
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(kBuffer));
    parser_->body_limit(static_cast<uint64_t>(options().max_body));
    parser_->on_chunk_header(on_chunk_);
    Failure failure;
    parser_->put(asio::buffer(raw), failure);
    if (failure && failure != http::error::need_more) return refuse({400, base::text("not HTTP: ", failure.message())});
    if (parser_->is_done()) return hand_over();
    held_ = head_.is_chunked ? options().max_body : *head_.content_length;
    if (!inside_.take(held_)) {
      held_ = 0;
      return refuse({429, "too many large requests at once"});
    }
    if (head_.expects_continue) return say_continue();
    read_body();
  }

  void refuse_size() { refuse({413, base::text("a body may have ", options().max_body, " bytes")}); }

  void say_continue() {
    static const std::string words = "HTTP/1.1 100 Continue\r\n\r\n";
    lowest().expires_after(options().write_time);
    asio::async_write(stream_, asio::buffer(words), [self = this->shared_from_this()](const Failure& failure, size_t) {
      if (!failure) self->read_body();
    });
  }

  void read_body() {
    lowest().expires_after(options().body_time);
    http::async_read(stream_, buffer_, *parser_, [self = this->shared_from_this()](const Failure& failure, size_t) {
      if (failure == http::error::body_limit) return self->refuse_size();
      if (failure == beast::error::timeout) return self->give_up();
      if (failure.category() == http::make_error_code(http::error::bad_chunk).category() &&
          failure != http::error::partial_message && failure != http::error::end_of_stream) {
        return self->refuse({400, base::text("not HTTP: ", failure.message())});
      }
      if (failure) return;
      self->hand_over();
    });
  }

  void hand_over() {
    Request request{head_.method, head_.path, std::move(head_.query), std::move(head_.headers), {}, remote_};
    request.body = std::move(parser_->get().body());
    parser_.reset();
    access_.received = static_cast<int64_t>(request.body.size());
    is_waiting_ = true;
    const uint64_t number = ++request_;
    lowest().expires_never();
    patience_.expires_after(options().answer_time);
    patience_.async_wait([self = this->shared_from_this(), number](const Failure& failure) {
      if (!failure) self->answer(number, error_response(504, "the answer took too long"));
    });
    inside_.handle(std::move(request), number, this->weak_from_this());
  }

  void refuse(const Refusal& refusal) {
    Response response = error_response(refusal.status, refusal.why);
    if (refusal.status == 429) response.set("Retry-After", "1");
    write(std::move(response), After::hear_out);
  }

  // Time is over, and the stream closed with it.
  void give_up() {
    access_.status = 408;
    access_.seconds = base::steady_seconds() - started_;
    inside_.log(access_);
  }

  void release_body() { inside_.give_back(std::exchange(held_, 0)); }

  void write(Response response, After after) {
    release_body();
    parser_.reset();
    message_.emplace();
    message_->version(11);
    message_->result(static_cast<unsigned>(response.status));
    message_->reason(reason_phrase(response.status));
    message_->set("X-Content-Type-Options", "nosniff");
    message_->set("Referrer-Policy", "no-referrer");
    message_->set("Cache-Control", "no-store");
    message_->set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    for (const auto& field : response.headers) message_->set(field.name, field.value);
    message_->keep_alive(after == After::next);
    message_->content_length(response.body.size());
    access_.status = response.status;
    if (head_.method != "HEAD") {
      access_.sent = static_cast<int64_t>(response.body.size());
      message_->body() = std::move(response.body);
    }
    lowest().expires_after(options().write_time);
    http::async_write(stream_, *message_, [self = this->shared_from_this(), after](const Failure& failure, size_t) {
      self->message_.reset();
      self->access_.seconds = base::steady_seconds() - self->started_;
      self->inside_.log(self->access_);
      if (failure) return;
      if (after == After::next) return self->wait_for_request();
      if (after == After::close) return self->say_goodbye();
      Failure ignored;
      self->lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      self->lowest().expires_after(kFarewell);
      self->hear_out();
    });
  }

  // Closed at once, bytes under way would make the system reset the connection, and the answer be lost.
  void hear_out() {
    buffer_.clear();
    lowest().async_read_some(buffer_.prepare(kBuffer),
                             [self = this->shared_from_this()](const Failure& failure, size_t) {
                               if (!failure) self->hear_out();
                             });
  }

  void say_goodbye() {
    if constexpr (std::is_same_v<Stream, SecureStream>) {
      lowest().expires_after(kFarewell);
      stream_.async_shutdown([self = this->shared_from_this()](const Failure&) {});
    } else {
      Failure ignored;
      stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    }
  }

  Inside& inside_;
  Stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer patience_;  // with the handler
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> message_;
  std::function<void(uint64_t, beast::string_view, Failure&)> on_chunk_ = [](uint64_t, beast::string_view extension,
                                                                             Failure& failure) {
    if (extension.size() > kMaxChunkExtension) failure = http::error::bad_chunk_extension;
  };
  Head head_;
  Access access_;
  std::string remote_;
  std::optional<double> idle_since_;
  double started_ = 0;
  int64_t held_ = 0;  // bytes of the server's room for bodies
  uint64_t request_ = 0;
  bool is_waiting_ = false;  // for the handler
};

}  // namespace lockstep::web
