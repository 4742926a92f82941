// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/json.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Recursive descent over one text; depth is bounded, so the stack is too.
class JsonParser {
 public:
  JsonParser(std::string_view content, const std::string& source, const JsonLimits& limits)
      : content_(content), source_(std::make_shared<const std::string>(source)), limits_(limits) {}

  Json parse() {
    check_whole();
    Json value = parse_value(0);
    skip_blank();
    if (at_ < content_.size()) fail("text after the end of the document", "keep one JSON value in the file");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& fix, Position position) const {
    throw Error(Blame::user, text(*source_, ":", position.line, ":", position.column, ": ", what), fix);
  }
  [[noreturn]] void fail(const std::string& what, const std::string& fix = "") const { fail(what, fix, here()); }

  void check_whole() const {
    if (content_.size() > limits_.max_bytes) {
      throw Error(Blame::user,
                  text(*source_, ":1:1: the document has ", content_.size(), " bytes, more than ", limits_.max_bytes),
                  "keep data out of documents; name files in them instead");
    }
    if (is_utf8(content_)) return;
    size_t good = 0;
    for (size_t low = 0, high = content_.size(); low <= high;) {  // longest valid prefix, cut sequences allowed
      const size_t middle = low + (high - low) / 2;
      size_t cut = middle;
      while (cut > 0 && cut < content_.size() && (static_cast<uint8_t>(content_[cut]) & 0xC0) == 0x80) --cut;
      if (is_utf8(content_.substr(0, cut))) {
        good = std::max(good, cut);
        low = middle + 1;
      } else {
        if (middle == 0) break;
        high = middle - 1;
      }
    }
    fail("the document is not valid UTF-8", "save the file with UTF-8 encoding", position_of(good));
  }

  Position position_of(size_t offset) const {
    Position position{1, 1};
    for (size_t i = 0; i < offset; ++i) {
      if (content_[i] == '\n') {
        ++position.line;
        position.column = 1;
      } else {
        ++position.column;
      }
    }
    return position;
  }

  Position here() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  bool done() const { return at_ >= content_.size(); }
  char peek() const { return done() ? '\0' : content_[at_]; }

  void advance() {
    if (content_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }

  void skip_blank() {
    while (!done()) {
      const char c = peek();
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance();
      } else if (c == '/' && limits_.comments) {
        skip_comment();
      } else {
        return;
      }
    }
  }

  void skip_comment() {
    const Position start = here();
    advance();
    if (peek() == '/') {
      while (!done() && peek() != '\n') advance();
      return;
    }
    if (peek() != '*') fail("a lone '/'", "comments are // or /* */", start);
    advance();
    while (!done()) {
      const bool star = peek() == '*';
      advance();
      if (star && peek() == '/') {
        advance();
        return;
      }
    }
    fail("a comment that never ends", "close it with */", start);
  }

  Json parse_value(int depth) {
    skip_blank();
    if (depth > limits_.max_depth) fail(text("nested deeper than ", limits_.max_depth, " levels"), "flatten it");
    if (done()) fail("the document ends where a value is expected", "is the file complete?");
    const Position position = here();
    Json value = parse_any(depth);
    value.set_position(position, source_);
    return value;
  }

  Json parse_any(int depth) {
    const char c = peek();
    if (c == '{') return parse_object(depth);
    if (c == '[') return parse_array(depth);
    if (c == '"') return Json(parse_string());
    if (c == '-' || (c >= '0' && c <= '9')) return parse_number();
    return parse_word();
  }

  Json parse_object(int depth) {
    Json all = Json::object();
    std::unordered_set<std::string> seen;
    advance();
    skip_blank();
    if (peek() == '}') return advance(), all;
    while (true) {
      skip_blank();
      const Position position = here();
      if (peek() != '"') fail("a key in quotes is expected", "write \"key\": value; no comma after the last member");
      const std::string key = parse_string();
      if (!seen.insert(key).second) fail(text("duplicate key '", key, "'"), "keep one of them", position);
      skip_blank();
      if (peek() != ':') fail(text("':' is expected after key '", key, "'"));
      advance();
      all.append(key) = parse_value(depth + 1);
      const_cast<Json::Member&>(all.members().back()).key_position = position;
      skip_blank();
      if (peek() == '}') return advance(), all;
      if (peek() != ',') fail("',' or '}' is expected", "is a comma missing before this?");
      advance();
    }
  }

  Json parse_array(int depth) {
    Json all = Json::array();
    advance();
    skip_blank();
    if (peek() == ']') return advance(), all;
    while (true) {
      all.push_back(parse_value(depth + 1));
      skip_blank();
      if (peek() == ']') return advance(), all;
      if (peek() != ',') fail("',' or ']' is expected", "is a comma missing before this?");
      advance();
    }
  }

  std::string parse_string() {
    const Position start = here();
    std::string value;
    advance();
    while (!done() && peek() != '"') {
      const size_t begin = at_;
      while (!done() && peek() != '"' && peek() != '\\' && static_cast<uint8_t>(peek()) >= 0x20) ++at_;
      value.append(content_.substr(begin, at_ - begin));
      if (done() || peek() == '"') break;
      if (peek() != '\\') fail("a raw control character in a string", "close the quote or use \\n");
      advance();
      parse_escape(value);
    }
    if (done()) fail("a string that never ends", "close it with \"", start);
    advance();
    return value;
  }

  void parse_escape(std::string& value) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt";
    static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (done()) fail("a string that never ends");
    const char c = peek();
    if (c == 'u') return parse_unicode_escape(value);
    const size_t known = kFrom.find(c);
    if (known == std::string_view::npos) fail(text("unknown escape '\\", c, "'"), "write \\\\ for a backslash");
    value += kTo[known];
    advance();
  }

  void parse_unicode_escape(std::string& value) {
    uint32_t code = parse_hex4();
    if (code >= 0xD800 && code < 0xDC00) {
      if (content_.substr(at_, 2) != "\\u") fail("a lone surrogate escape");
      advance();
      const uint32_t low = parse_hex4();
      if (low < 0xDC00 || low > 0xDFFF) fail("a lone surrogate escape");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      fail("a lone surrogate escape");
    }
    append_utf8(value, code);
  }

  uint32_t parse_hex4() {
    advance();  // the 'u'
    if (at_ + 4 > content_.size()) fail("an escape cut short");
    uint32_t code = 0;
    const auto* first = content_.data() + at_;
    const auto [end, error] = std::from_chars(first, first + 4, code, 16);
    if (error != std::errc() || end != first + 4) fail("\\u needs four hexadecimal digits");
    for (int i = 0; i < 4; ++i) advance();
    return code;
  }

  Json parse_number() {
    const size_t start = at_;
    const Position position = here();
    bool integer = true;
    for (; !done(); ++at_) {
      const char c = peek();
      const bool is_fraction = c == '.' || c == 'e' || c == 'E';
      if (!is_fraction && c != '+' && c != '-' && (c < '0' || c > '9')) break;
      if (is_fraction) integer = false;
    }
    const std::string_view token = content_.substr(start, at_ - start);
    const size_t digits = token[0] == '-' ? 1 : 0;
    const bool leading_zero =
        token.size() > digits + 1 && token[digits] == '0' && token[digits + 1] >= '0' && token[digits + 1] <= '9';
    double number = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (error != std::errc() || end != token.data() + token.size() || leading_zero || token.back() == '.') {
      fail(text("'", token, "' is not a number"), "quote it if it is text, e.g. \"48:00:00\" or \"12 GB\"", position);
    }
    int64_t exact = 0;
    const auto whole = std::from_chars(token.data(), token.data() + token.size(), exact);
    if (integer && whole.ec == std::errc() && whole.ptr == token.data() + token.size()) return Json(exact);
    return Json(number);
  }

  Json parse_word() {
    const Position position = here();
    const size_t start = at_;
    while (!done() && (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_')) advance();
    const std::string_view word = content_.substr(start, at_ - start);
    if (word == "true") return Json(true);
    if (word == "false") return Json(false);
    if (word == "null") return Json();
    if (word.empty()) fail(text("unexpected '", printable(peek()), "'"), "", position);
    fail(text("unknown word '", word, "'"), "quote it if it is text", position);
  }

  static std::string printable(char c) {
    return static_cast<uint8_t>(c) < 0x20 ? "control character" : std::string(1, c);
  }

  std::string_view content_;
  const std::shared_ptr<const std::string> source_;
  const JsonLimits& limits_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

Json parse_json(std::string_view content, const std::string& source, const JsonLimits& limits) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);  // some editors write a byte order mark
  return JsonParser(content, source, limits).parse();
}

}  // namespace lockstep::base
