// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/gate.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::text;

const std::string kToken(64, 'a');

// 0: it may pass.
int status_at(const Gate& gate, const std::string& line, const std::string& fields,
              const std::string& host = "localhost:1") {
  const auto found = read_head(text(line, " HTTP/1.1\r\nHost: ", host, "\r\n", fields, "\r\n"));
  EXPECT_TRUE(found.head) << found.refusal.why;
  const auto refused = refuse_at(gate, found.head.value());
  return refused ? refused->status : 0;
}

TEST(GateTest, AsksForTheToken) {
  const Gate gate{kToken};
  EXPECT_EQ(status_at(gate, "GET /", ""), 401);
  EXPECT_EQ(status_at(gate, "GET /", text("Authorization: Bearer ", kToken, "\r\n")), 0);
  EXPECT_EQ(status_at(gate, "GET /", text("Authorization: bearer ", kToken, "\r\n")), 0);
  EXPECT_EQ(status_at(gate, "GET /", text("Cookie: a=b; ", cookie_name(kToken), "=", kToken, "\r\n")), 0);
  for (const std::string& wrong :
       {text("Authorization: Bearer ", kToken.substr(1), "\r\n"), text("Authorization: Bearer ", kToken, "a\r\n"),
        text("Authorization: Basic ", kToken, "\r\n"), std::string("Authorization: Bearer\r\n"),
        std::string("Authorization:\r\n"), text("Cookie: other=", kToken, "\r\n"),
        text("Cookie: ", cookie_name(kToken), "=\r\n"), text("Cookie: ", cookie_name(kToken), "\r\n")}) {
    EXPECT_EQ(status_at(gate, "GET /", wrong), 401) << wrong;
  }
}

TEST(GateTest, ALinkWithTheTokenBecomesACookie) {
  const Gate gate{kToken};
  const auto found = read_head(text("GET /page?token=", kToken, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const auto answer = refuse_at(gate, found.head.value());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 303);
  EXPECT_EQ(*find_value(answer->headers, "Location"), "/page");
  const std::string cookie = *find_value(answer->headers, "Set-Cookie");
  EXPECT_EQ(cookie, text(cookie_name(kToken), "=", kToken, "; Path=/; HttpOnly; SameSite=Strict"));
  EXPECT_EQ(status_at(gate, "GET /?token=wrong", ""), 401);
  EXPECT_EQ(status_at(gate, text("POST /?token=", kToken), ""), 401) << "a forged form could send that";
}

TEST(GateTest, KnowsItsOwnNames) {
  const Gate gate{"", {"node7"}};
  for (const char* own : {"localhost", "LOCALHOST:99", "127.0.0.1:8000", "[::1]", "[::1]:1", "node7:1"}) {
    EXPECT_EQ(status_at(gate, "GET /", "", own), 0) << own;
  }
  for (const char* other : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::2]", "0.0.0.0",
                            "localhost:80@evil.example", "evil.example:localhost"}) {
    EXPECT_EQ(status_at(gate, "GET /", "", other), 421) << other;
  }
}

TEST(GateTest, PagesOfOthersChangeNothing) {
  const Gate gate{""};
  EXPECT_EQ(status_at(gate, "POST /", ""), 0);
  EXPECT_EQ(status_at(gate, "POST /", "Origin: http://localhost:1\r\n"), 0);
  for (const char* origin : {"http://evil.example", "null", "https://localhost:1", "http://localhost:2", ""}) {
    EXPECT_EQ(status_at(gate, "POST /", text("Origin: ", origin, "\r\n")), 403) << origin;
  }
  EXPECT_EQ(status_at(gate, "GET /", "Origin: http://evil.example\r\n"), 0);
}

TEST(GateTest, TakesListedMethodsAlone) {
  const Gate gate{""};
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"}) {
    EXPECT_EQ(status_at(gate, text(method, " /"), ""), 405) << method;
  }
}

TEST(GateTest, SecretsAreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("", "abd"));
  EXPECT_NE(cookie_name("a"), cookie_name("b"));
}

}  // namespace
}  // namespace lockstep::web
