// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::base {

struct Position {  // 1-based position in a source text; {0, 0} for values made by the program
  int line = 0;
  int column = 0;
};

// A JSON value that remembers where it stood in its file, so that every later complaint can name line and column.
// Objects keep the order of their members. Numbers remember whether they were written as integers.
class Json {
 public:
  enum class Kind { null, boolean, number, string, array, object };
  struct Member;

  // Defined in json.cpp: a Member holds a Json, so it is incomplete here, and clang (rightly) minds.
  Json();
  ~Json();
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  Json(std::nullptr_t);  // NOLINT(google-explicit-constructor): values convert as in JSON text
  Json(bool value);
  Json(double value);
  template <class Integer, std::enable_if_t<std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>, int> = 0>
  Json(Integer value) : Json(Exact{static_cast<int64_t>(value)}) {}
  Json(std::string value);
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  static Json array(std::vector<Json> items = {});
  static Json object();
  template <class Range>
  static Json array_of(const Range& range) {
    Json all = array();
    for (const auto& item : range) all.push_back(Json(item));
    return all;
  }

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_number() const { return kind_ == Kind::number; }
  bool is_integer() const { return is_integer_; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }
  const char* kind_name() const;  // "an object", "a string", ...: for messages

  // REQUIRES: the matching kind; otherwise a user error that names the place.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const std::vector<Json>& items() const;
  const std::vector<Member>& members() const;

  // The member, or null when absent. REQUIRES: an object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  const Json& at(std::string_view key) const;  // user error when absent
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  int64_t int_or(std::string_view key, int64_t otherwise) const;
  double double_or(std::string_view key, double otherwise) const;
  std::string string_or(std::string_view key, const std::string& otherwise) const;

  Json& operator[](std::string_view key);  // inserts null when absent; turns null into an object
  Json& append(std::string key);           // a new last member, null. REQUIRES: the key is not there yet (not checked)
  void push_back(Json item);
  void erase(std::string_view key);
  size_t size() const;

  Position position() const { return position_; }
  const std::string& source() const;
  void set_position(Position position, std::string source);
  // All values of a text share its source, so that a million small values do not carry a million names.
  void set_position(Position position, std::shared_ptr<const std::string> source);
  std::string where() const;  // "job.json:3:14", "" without a source, the source alone without a line

  // Same value; places do not count.
  bool operator==(const Json& other) const;

  // Compact with indent < 0. Short arrays of scalars stay on one line. Non-finite numbers become null.
  std::string dump(int indent = 2) const;

 private:
  struct Exact {
    int64_t value;
  };
  explicit Json(Exact integer);
  [[noreturn]] void wrong_kind(const char* wanted) const;
  const Json* find_renamed(std::string_view key) const;  // user error when it is there by its old name (renamed.h)
  void write(std::string& out, int indent, int depth) const;

  Kind kind_ = Kind::null;
  bool boolean_ = false;
  double number_ = 0;
  int64_t integer_ = 0;
  bool is_integer_ = false;
  std::string string_;
  std::vector<Json> items_;
  std::vector<Member> members_;
  Position position_;
  std::shared_ptr<const std::string> source_;
};

struct Json::Member {
  std::string key;
  Json value;
  Position key_position;
  bool operator==(const Member& other) const { return key == other.key && value == other.value; }
};

struct JsonLimits {
  size_t max_bytes = 1 << 20;
  int max_depth = 64;
  bool comments = true;  // `// to the end of the line` and `/* block */`
};

// Parses `content`; `source` names it in errors. User error with line and column for anything that is not one JSON
// value: bad syntax, duplicate keys, invalid UTF-8, beyond the limits.
Json parse_json(std::string_view content, const std::string& source, const JsonLimits& limits = {});

std::string quote_json(std::string_view raw);

}  // namespace lockstep::base
