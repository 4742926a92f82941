// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/web/http/server.h"

namespace lockstep::web {
namespace {

using base::text;
using std::chrono::milliseconds;

constexpr int kPatience = 20000;  // ms: against a hang, not for a slow machine

// A socket, and nothing between it and the server.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  // What the other side does not take any more is left out.
  void send(const std::string& bytes) const {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t took = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (took <= 0) return;
      sent += static_cast<size_t>(took);
    }
  }
  // Until the other side closes; what came behind the last response() too.
  std::string all() {
    std::string got = std::exchange(pending_, "");
    while (more(got)) {
    }
    return got;
  }
  // One response; its body has a Content-Length.
  std::string response() {
    while (true) {
      const size_t end = pending_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const size_t at = pending_.find("Content-Length: ");
        const size_t length = at < end ? std::stoul(pending_.substr(at + 16)) : 0;
        if (pending_.size() >= end + 4 + length) {
          std::string whole = pending_.substr(0, end + 4 + length);
          pending_.erase(0, whole.size());
          return whole;
        }
      }
      if (!more(pending_)) return pending_;
    }
  }

 private:
  bool more(std::string& got) const {
    pollfd one{socket_, POLLIN, 0};
    if (::poll(&one, 1, kPatience) != 1) {
      ADD_FAILURE() << "the server keeps silent";
      return false;
    }
    char bytes[4096];
    const ssize_t came = ::recv(socket_, bytes, sizeof bytes, 0);
    if (came > 0) got.append(bytes, static_cast<size_t>(came));
    return came > 0;
  }

  int socket_;
  bool is_connected_ = false;
  std::string pending_;
};

int status_of(const std::string& response) {
  return response.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(response.substr(9)) : 0;
}

// Answers with what it got.
void echo(Request&& request, const Answer& answer) {
  answer(text_response(text(request.method, " ", request.path, " [", request.body, "]")));
}

std::string request_line(const std::string& line) {
  return text(line, " HTTP/1.1\r\nHost: localhost\r\n");
}

std::string talk(const Server& server, const std::string& bytes) {
  Client client(server.port());
  client.send(bytes);
  return client.all();
}

const std::string kClose = "Connection: close\r\n\r\n";

TEST(ServerTest, AnswersOneRequestAfterTheOther) {
  const Server server({}, echo);
  Client client(server.port());
  client.send(request_line("GET /a") + "\r\n");
  EXPECT_NE(client.response().find("GET /a []"), std::string::npos);
  // Two at once, the first with a body in chunks.
  client.send(request_line("POST /b") +
              "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nHost: evil\r\n\r\n" +
              request_line("HEAD /c") + "\r\n");
  EXPECT_NE(client.response().find("POST /b [abcde]"), std::string::npos);
  client.send(request_line("GET /d") + kClose);
  const std::string rest = client.all();
  EXPECT_NE(rest.find("Content-Length: 10\r\n"), std::string::npos) << "of HEAD /c";
  EXPECT_EQ(rest.find("HEAD /c []"), std::string::npos);
  EXPECT_NE(rest.find("GET /d []"), std::string::npos);
  for (const char* field : {"nosniff", "no-referrer", "no-store", "default-src 'none'"}) {
    EXPECT_NE(rest.find(field), std::string::npos) << field;
  }
}

TEST(ServerTest, AnswersLaterFromAnotherThread) {
  std::vector<std::jthread> threads;
  std::mutex mutex;
  const Server server({}, [&](Request&& request, const Answer& answer) {
    const std::lock_guard lock(mutex);
    threads.emplace_back([request, answer] {
      answer(text_response(request.path));
      answer(text_response("twice"));
    });
  });
  for (const char* path : {"/1", "/2"}) {
    const std::string response = talk(server, request_line(text("GET ", path)) + kClose);
    EXPECT_NE(response.find(path), std::string::npos);
    EXPECT_EQ(response.find("twice"), std::string::npos);
  }
}

TEST(ServerTest, NobodyIsLeftWithoutAnAnswer) {
  const Server server({.answer_time = milliseconds(50)},
                      [kept = std::make_shared<std::vector<Answer>>()](Request&& request, const Answer& answer) {
                        if (request.path == "/forgets") return;
                        if (request.path == "/keeps") return kept->push_back(answer);
                        if (request.path == "/user") throw base::Error(base::Blame::user, "wrong words");
                        if (request.path == "/disk") throw base::Error(base::Blame::machine, "a disk of ours");
                        throw std::runtime_error("a secret of ours");
                      });
  EXPECT_EQ(status_of(talk(server, request_line("GET /forgets") + kClose)), 500);
  EXPECT_EQ(status_of(talk(server, request_line("GET /keeps") + kClose)), 504);
  const std::string wrong = talk(server, request_line("GET /user") + kClose);
  EXPECT_EQ(status_of(wrong), 400);
  EXPECT_NE(wrong.find("wrong words"), std::string::npos);
  testing::internal::CaptureStderr();
  for (const char* path : {"/fails", "/disk"}) {
    const std::string failed = talk(server, request_line(text("GET ", path)) + kClose);
    EXPECT_EQ(status_of(failed), 500);
    EXPECT_EQ(failed.find("of ours"), std::string::npos);
    EXPECT_NE(failed.find("its log has why"), std::string::npos);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "a request failed: a secret of ours\na request failed: a disk of ours\n");
}

TEST(ServerTest, RefusesWhatIsNotHttp) {
  const Server server({.max_body = 1000}, echo);
  const std::string post = request_line("POST /");
  const std::vector<std::pair<std::string, int>> cases = {
      {"\x16\x03\x01\x02 hello\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {request_line("GET /../../etc/passwd") + "\r\n", 400},
      {request_line("GET /%2e%2e/%2e%2e/etc/passwd") + "\r\n", 400},
      {post + "Content-Length: 1001\r\n\r\n", 413},
      {post + "Content-Length: 18446744073709551615\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n-2\r\nabc\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(300, 'x') + "\r\na\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: xchunked\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
      {request_line("DELETE /") + "\r\n", 405},
      {request_line("GET /") + "X: " + std::string(20000, 'x') + "\r\n\r\n", 431},
      {std::string(70000, 'x'), 431},
      {post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415},
  };
  for (const auto& [bytes, status] : cases) {
    const std::string response = talk(server, bytes);
    EXPECT_EQ(status_of(response), status) << bytes.substr(0, 120);
    EXPECT_EQ(response.find("HTTP/1.1 ", 8), std::string::npos) << "a second answer: " << bytes.substr(0, 120);
    EXPECT_NE(response.find("Connection: close"), std::string::npos) << bytes.substr(0, 120);
  }
  // Tiny chunks without end: Triton took 3 MB of them onto its stack (CVE-2025-23310), httplib past its limit
  // (CVE-2025-46728).
  std::string chunks = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100000; ++i) chunks += "1\r\nA\r\n";
  EXPECT_EQ(status_of(talk(server, chunks)), 413);
  EXPECT_EQ(status_of(talk(server, request_line("GET /") + kClose)), 200) << "it serves on";
}

TEST(ServerTest, TheTokenIsAskedForBeforeTheBodyIsRead) {
  const Server server({.gate = {std::string(64, 'b')}}, echo);
  const std::string response = talk(server, request_line("POST /") + "Content-Length: 1000000\r\n\r\n");
  EXPECT_EQ(status_of(response), 401);
  EXPECT_EQ(status_of(talk(server,
                           request_line("GET /") + "Authorization: Bearer " + std::string(64, 'b') + "\r\n" + kClose)),
            200);
}

TEST(ServerTest, SaysContinueToWhoeverWaitsForIt) {
  const Server server({}, echo);
  Client client(server.port());
  client.send(request_line("POST /") + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(client.response()), 100);
  client.send("ok");
  EXPECT_NE(client.response().find("[ok]"), std::string::npos);
}

// One byte now and then keeps a timer of single reads from ever ending; these are limits of the whole.
TEST(ServerTest, SlowClientsAreLetGo) {
  const Server server({.head_time = milliseconds(150), .body_time = milliseconds(150), .idle_time = milliseconds(150)},
                      echo);
  Client slow_head(server.port());
  Client slow_body(server.port());
  Client idle(server.port());
  slow_head.send("GET / HT");
  slow_body.send(request_line("POST /") + "Content-Length: 100000\r\n\r\nab");
  std::jthread drip([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      slow_head.send("T");
      slow_body.send("c");
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  EXPECT_EQ(slow_head.all(), "");
  EXPECT_EQ(slow_body.all(), "");
  EXPECT_EQ(idle.all(), "");
}

TEST(ServerTest, OfTooManyConnectionsTheLongestIdleOneGoes) {
  const Server server({.max_connections = 3}, echo);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(request_line("GET /") + "\r\n");
    EXPECT_EQ(status_of(clients.back()->response()), 200);
  }
  EXPECT_EQ(status_of(talk(server, request_line("GET /new") + kClose)), 200);
  EXPECT_EQ(clients[0]->all(), "");
  clients[2]->send(request_line("GET /") + "\r\n");
  EXPECT_EQ(status_of(clients[2]->response()), 200);
}

TEST(ServerTest, BodiesOfAllRequestsTogetherAreBounded) {
  const Server server({.max_body = 1000, .max_bodies = 1500}, echo);
  Client first(server.port());
  first.send(request_line("POST /") + "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(first.response()), 100);  // its room is taken
  const std::string second = talk(server, request_line("POST /") + "Content-Length: 1000\r\n\r\n");
  EXPECT_EQ(status_of(second), 429);
  EXPECT_NE(second.find("Retry-After"), std::string::npos);
  first.send(std::string(1000, 'x'));
  EXPECT_EQ(status_of(first.response()), 200);
  EXPECT_EQ(
      status_of(talk(server, request_line("POST /") + "Content-Length: 1000\r\n" + kClose + std::string(1000, 'x'))),
      200);
}

TEST(ServerTest, DrainsBeforeItStops) {
  std::promise<Answer> asked;
  Server server({}, [&](Request&&, const Answer& answer) { asked.set_value(answer); });
  Client idle(server.port());
  Client busy(server.port());
  busy.send(request_line("GET /") + "\r\n");
  const Answer answer = asked.get_future().get();
  std::jthread stopping([&] { server.stop(milliseconds(kPatience)); });
  EXPECT_EQ(idle.all(), "");
  EXPECT_FALSE(Client(server.port()).is_connected());
  answer(text_response("the last one"));
  const std::string response = busy.all();
  EXPECT_NE(response.find("the last one"), std::string::npos);
  EXPECT_NE(response.find("Connection: close"), std::string::npos);
}

TEST(ServerTest, AnAnswerBehindTheEndDoesNothing) {
  Answer late;
  std::promise<void> asked;
  {
    Server server({}, [&](Request&&, const Answer& answer) {
      late = answer;
      asked.set_value();
    });
    Client client(server.port());
    client.send(request_line("GET /") + "\r\n");
    asked.get_future().get();
    server.stop(milliseconds(0));
    EXPECT_EQ(client.all(), "");
  }
  late(text_response("too late"));
}

TEST(ServerTest, WritesDownWhoAskedWhatWithoutTheQuery) {
  std::promise<Access> logged;
  const Server server({.log = [&](const Access& access) { logged.set_value(access); }}, echo);
  talk(server, request_line("POST /a?token=secret") + "Content-Length: 3\r\n" + kClose + "abc");
  const Access access = logged.get_future().get();
  EXPECT_EQ(access.method, "POST");
  EXPECT_EQ(access.path, "/a");
  EXPECT_EQ(access.remote, "127.0.0.1");
  EXPECT_EQ(access.status, 200);
  EXPECT_EQ(access.received, 3);
  EXPECT_EQ(access.sent, 13);
}

TEST(ServerTest, SaysWhyItCannotStart) {
  const Server first({}, echo);
  try {
    const Server second({.port = first.port()}, echo);
    FAIL() << "two servers on one port";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_NE(error.fix().find("another port"), std::string::npos);
  }
  EXPECT_THROW(Server({.address = "here"}, echo), base::Error);
  EXPECT_THROW(Server({.port = 70000}, echo), base::Error);
}

// Made by the openssl program, as people make theirs.
struct Certificate {
  base::TemporaryFolder folder;
  base::Path file = folder.path() / "certificate.pem";
  base::Path key = folder.path() / "key.pem";
  bool is_made = std::system(text("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
                                  "-subj /CN=localhost -keyout ",
                                  key.string(), " -out ", file.string(), " 2> /dev/null")
                                 .c_str()) == 0;
};

TEST(ServerTest, SpeaksTls) {
  const Certificate own;
  ASSERT_TRUE(own.is_made);
  const Server server({.certificate = own.file, .key = own.key}, echo);
  EXPECT_EQ(server.url(), text("https://127.0.0.1:", server.port()));
  const base::Path said = own.folder.path() / "said";
  const auto ask = [&](const char* options) {
    return std::system(text("printf 'GET /over/tls HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' | "
                            "openssl s_client -quiet -verify_return_error -CAfile ",
                            own.file.string(), " ", options, " -connect 127.0.0.1:", server.port(), " > ",
                            said.string(), " 2>&1")
                           .c_str());
  };
  ask("");
  EXPECT_NE(base::read_file(said).find("GET /over/tls []"), std::string::npos) << base::read_file(said);
  ask("-tls1_1 -cipher DEFAULT@SECLEVEL=0");
  EXPECT_EQ(base::read_file(said).find("GET /over/tls []"), std::string::npos);
  EXPECT_EQ(status_of(talk(server, request_line("GET /") + kClose)), 0) << "plain HTTP on a TLS port";
}

TEST(ServerTest, RefusesCertificatesThatAreNone) {
  const Certificate own;
  const Certificate other;
  ASSERT_TRUE(own.is_made && other.is_made);
  EXPECT_THROW(Server({.certificate = own.key, .key = own.key}, echo), base::Error);
  EXPECT_THROW(Server({.certificate = own.file, .key = other.key}, echo), base::Error) << "another one's key";
  EXPECT_THROW(Server({.certificate = own.folder.path() / "absent", .key = own.key}, echo), base::Error);
}

}  // namespace
}  // namespace lockstep::web
