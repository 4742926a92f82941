// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/json_slices.h"

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;

constexpr int kMaxDepth = 64;
constexpr base::JsonLimits kSliceLimits{.max_bytes = size_t{64} << 20, .max_depth = kMaxDepth, .comments = false};

int64_t line_at(std::string_view text, size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(std::min(at, text.size())), '\n');
}

class SliceWalker {
 public:
  SliceWalker(std::string_view text, const std::string& source,
              const std::function<void(std::string_view, JsonSlice)>& element)
      : text_(text), source_(source), element_(element) {}

  void walk() {
    skip_blanks();
    if (peek() == '[') {
      walk_array("");
    } else if (peek() == '{') {
      walk_object();
    } else {
      fail("an object or an array is expected");
    }
    skip_blanks();
    if (at_ != text_.size()) fail("something stands behind the end");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(Blame::user, base::text(source_, ":", line_at(text_, at_), ": ", what),
                "is this the right file, and whole?");
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  void expect(char c, const char* what) {
    if (peek() != c) fail(what);
    ++at_;
    skip_blanks();
  }

  // The text between the quotes, as it stands there.
  std::string_view skip_string() {
    if (peek() != '"') fail("a string is expected");
    const size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = begin;
      fail("a string is never closed");
    }
    return text_.substr(begin, at_++ - begin);
  }

  static bool ends_word(char c) {
    return c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"' || c == ' ' || c == '\n' ||
           c == '\r' || c == '\t' || c == '\0';
  }

  // Brackets are counted, not matched by kind: who parses the slice does that.
  void skip_value() {
    int depth = 0;
    do {
      skip_blanks();
      const char c = peek();
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[') {
        if (++depth > kMaxDepth) fail("nested too deeply");
        ++at_;
      } else if (c == '}' || c == ']') {
        if (--depth < 0) fail("a value is expected");
        ++at_;
      } else if (depth > 0 && (c == ',' || c == ':')) {
        ++at_;
      } else {
        const size_t begin = at_;
        while (at_ < text_.size() && !ends_word(text_[at_])) ++at_;
        if (at_ == begin) fail("a value is expected");
      }
    } while (depth > 0);
    skip_blanks();
  }

  void walk_array(std::string_view key) {
    expect('[', "an array is expected");
    while (peek() != ']') {
      const size_t begin = at_;
      skip_value();
      size_t end = at_;
      while (end > begin && std::strchr(" \n\r\t", text_[end - 1])) --end;
      element_(key, {begin, end - begin});
      if (peek() == ',') {
        expect(',', "");
        if (peek() == ']') fail("a value is expected");
      } else if (peek() != ']') {
        fail("',' or ']' is expected");
      }
    }
    expect(']', "");
  }

  void walk_object() {
    expect('{', "an object is expected");
    while (peek() != '}') {
      const std::string_view key = skip_string();
      skip_blanks();
      expect(':', "':' is expected");
      if (peek() == '[') {
        walk_array(key);
      } else {
        skip_value();
      }
      if (peek() == ',') {
        expect(',', "");
        if (peek() == '}') fail("a key is expected");
      } else if (peek() != '}') {
        fail("',' or '}' is expected");
      }
    }
    expect('}', "");
  }

  std::string_view text_;
  const std::string& source_;
  const std::function<void(std::string_view, JsonSlice)>& element_;
  size_t at_ = 0;
};

}  // namespace

void for_each_element(std::string_view text, const std::string& source,
                      const std::function<void(std::string_view, JsonSlice)>& element) {
  SliceWalker(text, source, element).walk();
}

base::Json parse_slice(std::string_view text, const std::string& source, JsonSlice slice) {
  try {
    return base::parse_json(text.substr(slice.offset, slice.size), "", kSliceLimits);
  } catch (const Error&) {
    return parse_placed_slice(text, source, slice);
  }
}

base::Json parse_placed_slice(std::string_view text, const std::string& source, JsonSlice slice) {
  if (slice.size > kSliceLimits.max_bytes) {
    throw Error(Blame::user,
                base::text(source, ":", line_at(text, slice.offset), ": a value of ", slice.size, " bytes, more than ",
                           kSliceLimits.max_bytes),
                "is this the right file, and whole?");
  }
  // Blanks in place of all that stands before it: the parser counts the lines and columns.
  const size_t before = slice.offset == 0 ? std::string_view::npos : text.rfind('\n', slice.offset - 1);
  const size_t line_start = before == std::string_view::npos ? 0 : before + 1;
  std::string padded(static_cast<size_t>(line_at(text, slice.offset)) - 1, '\n');
  padded.append(slice.offset - line_start, ' ');
  padded += text.substr(slice.offset, slice.size);
  base::JsonLimits limits = kSliceLimits;
  limits.max_bytes = padded.size();
  return base::parse_json(padded, source, limits);
}

}  // namespace lockstep::sources
