// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/gate.h"

#include <algorithm>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::text;

// "localhost:8080" to "localhost", "[::1]:80" to "[::1]".
std::string_view without_port(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) return host;
  const std::string_view port = host.substr(colon + 1);
  const bool is_number = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? host.substr(0, colon) : host;
}

bool is_own_host(const Gate& gate, std::string_view host) {
  const std::string_view name = without_port(host);
  for (const std::string_view own : {"localhost", "127.0.0.1", "[::1]"}) {
    if (same_name(name, own)) return true;
  }
  return std::any_of(gate.hosts.begin(), gate.hosts.end(), [&](const auto& own) { return same_name(name, own); });
}

std::string_view cookie_of(const Head& head, std::string_view name) {
  for (const auto& field : head.headers) {
    if (!same_name(field.name, "Cookie")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const size_t end = rest.find(';');
      const std::string_view cookie = base::trim(rest.substr(0, end));
      const size_t equals = cookie.find('=');
      if (equals != std::string_view::npos && cookie.substr(0, equals) == name) {
        // Points into the field, which lives as long as the head does.
        return cookie.substr(equals + 1);
      }
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  return {};
}

bool shows_token(const Gate& gate, const Head& head) {
  constexpr std::string_view bearer = "Bearer ";
  if (const std::string* field = find_value(head.headers, "Authorization")) {
    const std::string_view value = *field;
    return value.size() > bearer.size() && same_name(value.substr(0, bearer.size()), bearer) &&
           same_secret(base::trim(value.substr(bearer.size())), gate.token);
  }
  return same_secret(cookie_of(head, cookie_name(gate.token)), gate.token);
}

Response enter(const Gate& gate, const Head& head) {
  Response response = text_response("", 303);
  response.set("Location", head.path);
  response.set("Set-Cookie", text(cookie_name(gate.token), "=", gate.token, "; Path=/; HttpOnly; SameSite=Strict",
                                  gate.is_tls ? "; Secure" : ""));
  return response;
}

Response ask_for_token() {
  Response response = error_response(401,
                                     "the token of this server is asked for: 'Authorization: Bearer TOKEN', or "
                                     "?token=TOKEN behind the address; it printed the token, or the file that has "
                                     "it, when it started");
  response.set("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

bool same_secret(std::string_view one, std::string_view other) {
  base::Sha256 first;
  base::Sha256 second;
  first.update(one);
  second.update(other);
  const auto a = first.digest();
  const auto b = second.digest();
  volatile uint8_t differ = 0;  // no early end for a clever compiler
  for (size_t i = 0; i < a.size(); ++i) differ = static_cast<uint8_t>(differ | (a[i] ^ b[i]));
  return differ == 0;
}

std::string cookie_name(std::string_view token) {
  return "lockstep-" + base::sha256_hex(text("cookie ", token)).substr(0, 12);
}

std::optional<Response> refuse_at(const Gate& gate, const Head& head) {
  if (std::find(gate.methods.begin(), gate.methods.end(), head.method) == gate.methods.end()) {
    Response response = error_response(405, "this method is not taken here");
    response.set("Allow", base::join(gate.methods, ", "));
    return response;
  }
  if (!is_own_host(gate, head.host)) return error_response(421, "this server does not go by that Host");
  const bool only_reads = head.method == "GET" || head.method == "HEAD";
  if (!only_reads) {
    for (const auto& field : head.headers) {
      if (!same_name(field.name, "Origin")) continue;
      if (field.value != text(gate.is_tls ? "https://" : "http://", head.host)) {
        return error_response(403, "a page of another origin asks");
      }
    }
  }
  if (gate.token.empty() || shows_token(gate, head)) return {};
  const std::string* given = find_value(head.query, "token");
  if (only_reads && given && same_secret(*given, gate.token)) return enter(gate, head);
  return ask_for_token();
}

}  // namespace lockstep::web
