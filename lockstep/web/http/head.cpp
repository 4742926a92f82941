// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/head.h"

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::text;

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kMaxTarget = 4096;

bool is_token(std::string_view word) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

bool is_method(std::string_view word) {
  return !word.empty() && word.size() <= 16 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_field_value(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Why the segments of a decoded path could lead elsewhere; empty: they cannot.
std::string path_problem(std::string_view encoded, std::string_view path) {
  for (const std::string_view hidden : {"%2f", "%2F", "%5c", "%5C"}) {
    if (encoded.find(hidden) != std::string_view::npos) return "an encoded slash in the path";
  }
  if (path.find('\\') != std::string_view::npos) return "a backslash in the path";
  const auto segments = base::split(path.substr(1), '/');
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool is_last = i + 1 == segments.size();
    if (segments[i] == "." || segments[i] == ".." || (segments[i].empty() && !is_last)) {
      return "'.', '..' or an empty segment in the path";
    }
  }
  return "";
}

// Reads one head from front to back; the first thing that is wrong with it decides.
class HeadReader {
 public:
  explicit HeadReader(std::string_view raw) : rest_(raw) {}

  HeadOrRefusal read() {
    request_line();
    while (is_good() && !rest_.empty()) field();
    if (is_good()) check_framing();
    if (is_good()) check_fields();
    if (!is_good()) return {{}, refusal_};
    return {std::move(head_), {}};
  }

 private:
  bool is_good() const { return refusal_.why.empty(); }
  void refuse(std::string why, int status = 400) {
    if (is_good()) refusal_ = {status, std::move(why)};
  }

  // Up to the next CRLF, which is taken; a bare CR or LF inside is an error.
  std::string_view line() {
    const size_t end = rest_.find(kLineEnd);
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + kLineEnd.size());
    if (end == std::string_view::npos || found.find_first_of("\r\n") != std::string_view::npos) {
      refuse("a line of the head does not end in CR LF");
    }
    return found;
  }

  void request_line() {
    const auto words = base::split(line(), ' ');
    if (!is_good()) return;
    if (words.size() != 3 || !is_method(words[0])) return refuse("not a request line: METHOD /target HTTP/1.1");
    if (words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0") return refuse("HTTP/1.1 is spoken here");
    is_old_ = words[2] == "HTTP/1.0";
    head_.method = words[0];
    target(words[1]);
  }

  void target(std::string_view target) {
    if (target.size() > kMaxTarget) return refuse("the target is too long", 431);
    const bool is_plain =
        std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
    if (!is_plain || target.empty() || target.front() != '/') return refuse("the target is not a plain path");
    const size_t question = target.find('?');
    const std::string_view encoded = target.substr(0, question);
    const auto path = percent_decode(encoded);
    if (!path) return refuse("the path is not well encoded");
    const std::string problem = path_problem(encoded, *path);
    if (!problem.empty()) return refuse(problem);
    head_.path = *path;
    if (question != std::string_view::npos) query(target.substr(question + 1));
  }

  void query(std::string_view encoded) {
    for (const auto& word : base::split(encoded, '&')) {
      if (word.empty()) continue;
      const size_t equals = word.find('=');
      const auto name = percent_decode(std::string_view(word).substr(0, equals));
      const auto value =
          percent_decode(equals == std::string::npos ? std::string_view() : std::string_view(word).substr(equals + 1));
      if (!name || !value) return refuse("the query is not well encoded");
      head_.query.push_back({*name, *value});
    }
  }

  void field() {
    const std::string_view whole = line();
    if (!is_good()) return;
    if (whole.empty()) {
      if (!rest_.empty()) refuse("bytes behind the head");
      return;
    }
    if (head_.headers.size() == kMaxHeaderFields) return refuse("too many header fields", 431);
    const size_t colon = whole.find(':');
    if (colon == std::string_view::npos || !is_token(whole.substr(0, colon))) {
      return refuse("a header field without a name, or folded over lines");
    }
    const std::string_view value = base::trim(whole.substr(colon + 1));
    if (!is_field_value(value)) return refuse("a control character in a header field");
    head_.headers.push_back({std::string(whole.substr(0, colon)), std::string(value)});
  }

  // The only field of that name; null: there is none.
  const std::string* only(std::string_view name) {
    const std::string* found = nullptr;
    for (const auto& field : head_.headers) {
      if (!same_name(field.name, name)) continue;
      if (found) refuse(text(name, " more than once"));
      found = &field.value;
    }
    return found;
  }

  // Where the body ends: the one question on which all who read the request must agree.
  void check_framing() {
    const std::string* length = only("Content-Length");
    const std::string* coding = only("Transfer-Encoding");
    if (length && coding) return refuse("Content-Length and Transfer-Encoding");
    if (coding) {
      if (is_old_) return refuse("Transfer-Encoding in HTTP/1.0");
      if (!same_name(*coding, "chunked")) return refuse("a Transfer-Encoding other than 'chunked'");
      head_.is_chunked = true;
    }
    if (length) {
      const bool is_number = !length->empty() && length->size() <= 15 &&
                             std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!is_number) return refuse("Content-Length is not a plain number");
      head_.content_length = std::stoll(*length);
    }
  }

  void check_fields() {
    const std::string* host = only("Host");
    if (!host || host->empty()) return refuse("no Host");
    head_.host = *host;
    if (only("Upgrade")) return refuse("Upgrade is not spoken here");
    if (const std::string* coding = only("Content-Encoding"); coding && !same_name(*coding, "identity")) {
      return refuse("bodies are taken uncompressed", 415);
    }
    if (const std::string* expects = only("Expect")) {
      if (!same_name(*expects, "100-continue")) return refuse("an Expect other than 100-continue", 417);
      head_.expects_continue = !is_old_;
    }
    const std::string* connection = find_value(head_.headers, "Connection");
    head_.keep_alive =
        is_old_ ? connection && same_name(*connection, "keep-alive") : !connection || !same_name(*connection, "close");
  }

  std::string_view rest_;
  Head head_;
  Refusal refusal_ = {};
  bool is_old_ = false;  // HTTP/1.0
};

}  // namespace

HeadOrRefusal read_head(std::string_view raw) {
  return HeadReader(raw).read();
}

std::optional<std::string> percent_decode(std::string_view encoded) {
  std::string decoded;
  decoded.reserve(encoded.size());
  for (size_t i = 0; i < encoded.size(); ++i) {
    char c = encoded[i];
    if (c == '%') {
      if (i + 2 >= encoded.size()) return {};
      const int high = hex_digit(encoded[i + 1]);
      const int low = hex_digit(encoded[i + 2]);
      if (high < 0 || low < 0) return {};
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return {};
    decoded += c;
  }
  if (!base::is_utf8(decoded)) return {};
  return decoded;
}

}  // namespace lockstep::web
