// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/head.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::text;

HeadOrRefusal read_target(const std::string& target) {
  return read_head(text("GET ", target, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

int status_with(const std::string& fields) {
  const auto found = read_head(text("POST /predict HTTP/1.1\r\nHost: localhost\r\n", fields, "\r\n"));
  return found.head ? 200 : found.refusal.status;
}

TEST(HeadTest, ReadsARequest) {
  const auto found = read_head(
      "POST /v2/models/a%20b/infer?x=1&empty&q=a%26b HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 12\r\n"
      "Expect: 100-continue\r\nX:  spaced \t\r\n\r\n");
  ASSERT_TRUE(found.head) << found.refusal.why;
  const Head& head = *found.head;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v2/models/a b/infer");
  EXPECT_EQ(head.query, (std::vector<NamedValue>{{"x", "1"}, {"empty", ""}, {"q", "a&b"}}));
  EXPECT_EQ(head.content_length, 12);
  EXPECT_TRUE(head.expects_continue && head.keep_alive && head.has_body());
  EXPECT_EQ(*find_value(head.headers, "x"), "spaced");
}

TEST(HeadTest, ConnectionsStayOpenAsTheVersionSays) {
  const auto kept = [](const char* version, const char* field) {
    return read_head(text("GET / ", version, "\r\nHost: a\r\n", field, "\r\n")).head.value().keep_alive;
  };
  EXPECT_TRUE(kept("HTTP/1.1", ""));
  EXPECT_FALSE(kept("HTTP/1.1", "Connection: close\r\n"));
  EXPECT_FALSE(kept("HTTP/1.0", ""));
  EXPECT_TRUE(kept("HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

// Each shape was taken by some server that read it in another way than the proxy in front of it.
TEST(HeadTest, RefusesWhatSmugglesRequests) {
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n"), 200);
  EXPECT_EQ(status_with("Content-Length: 3\r\n"), 200);
  for (const char* fields : {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                             "Content-Length: 3\r\nContent-Length: 3\r\n",
                             "Content-Length: 3, 3\r\n",
                             "Content-Length: +3\r\n",
                             "Content-Length: -1\r\n",
                             "Content-Length: 0x3\r\n",
                             "Content-Length: 99999999999999999999\r\n",
                             "Content-Length:\r\n",
                             "Transfer-Encoding: chunked, identity\r\n",
                             "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: identity\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding : chunked\r\n",
                             "Transfer-Encoding:\r\n chunked\r\n",
                             "X: a\r\n b\r\n",
                             "X\x01: a\r\n",
                             ": a\r\n",
                             "no colon\r\n",
                             "Host: localhost\r\n",
                             "X: a\rb\r\n",
                             "X: a\nY: b\r\n",
                             "Upgrade: h2c\r\n"}) {
    EXPECT_EQ(status_with(fields), 400) << fields;
  }
  EXPECT_EQ(status_with(std::string("X: a\0b\r\n", 8)), 400);
  EXPECT_FALSE(read_head("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").head);
  EXPECT_FALSE(read_head("GET / HTTP/1.1\r\n\r\n").head) << "no Host";
}

TEST(HeadTest, RefusesOtherRequestLines) {
  for (const char* line : {"GET /", "GET  / HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/2.0", "GET / HTTP/1.12",
                           " GET / HTTP/1.1", "G{T / HTTP/1.1", "PRI * HTTP/2.0", "\r\nGET / HTTP/1.1", ""}) {
    EXPECT_FALSE(read_head(text(line, "\r\nHost: a\r\n\r\n")).head) << line;
  }
}

TEST(HeadTest, NoTargetLeadsElsewhere) {
  for (const char* target : {"*",
                             "http://localhost/",
                             "//x",
                             "/..",
                             "/../etc/passwd",
                             "/a/../b",
                             "/./a",
                             "/a//b",
                             "/%2e%2e/etc",
                             "/%2e%2E",
                             "/a%2fb",
                             "/a%5c..",
                             "/a\\b",
                             "/%00",
                             "/a%0d%0aX:1",
                             "/%",
                             "/%4",
                             "/%zz",
                             "/%ff",
                             "/%c0%af",
                             "/caf\xc3\xa9",
                             "/a#b",
                             "x",
                             "/?a=%0a"}) {
    EXPECT_FALSE(read_target(target).head) << target;
  }
  // Decoded once: what is left is a name like any other.
  EXPECT_EQ(read_target("/%252e%252e/x").head.value().path, "/%2e%2e/x");
  EXPECT_EQ(read_target("/file:etc").head.value().path, "/file:etc");
  EXPECT_EQ(read_target("/" + std::string(5000, 'a')).refusal.status, 431);
}

TEST(HeadTest, BoundsTheFields) {
  std::string many;
  for (size_t i = 0; i < kMaxHeaderFields; ++i) many += text("X", i, ": 1\r\n");
  EXPECT_EQ(status_with(many), 431);
}

TEST(HeadTest, TakesNoCompressedBodies) {
  EXPECT_EQ(status_with("Content-Encoding: gzip\r\n"), 415);
  EXPECT_EQ(status_with("Content-Encoding: identity\r\n"), 200);
  EXPECT_EQ(status_with("Expect: something\r\n"), 417);
}

}  // namespace
}  // namespace lockstep::web
