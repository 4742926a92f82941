// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/web/http/message.h"

namespace lockstep::web {

// Request line and header fields of one request (RFC 9112), read more strictly than the RFC allows: what two programs
// could read in two ways is refused, whoever stands between the client and us (request smuggling).
struct Head {
  std::string method;
  std::string path;  // decoded once
  std::vector<NamedValue> query = {};
  std::vector<NamedValue> headers = {};
  std::string host = {};  // as the field has it
  bool keep_alive = true;
  bool is_chunked = false;
  std::optional<int64_t> content_length = {};
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
};

// Why a request is refused.
struct Refusal {
  int status = 400;
  std::string why;
};

struct HeadOrRefusal {
  std::optional<Head> head;
  Refusal refusal;
};

constexpr size_t kMaxHeaderFields = 100;

// `raw` ends with the empty line. Refused besides what the grammar does not have: fields without a name of letters, a
// field folded over lines, bare CR or LF, no Host or several, Content-Length twice or not a plain number, a
// Transfer-Encoding that is not exactly "chunked", both of them, an absolute target, "..", "." and empty segments,
// encoded slashes, backslashes and control characters in a path, compressed bodies, Upgrade.
HeadOrRefusal read_head(std::string_view raw);

// "%41+b" to "A+b"; none where it is malformed, no UTF-8, or hides a control character. Only once: "%2541" becomes
// "%41".
std::optional<std::string> percent_decode(std::string_view encoded);

}  // namespace lockstep::web
