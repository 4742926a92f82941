// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/renamed.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

}  // namespace

std::string quote_json(std::string_view raw) {
  // A file name may be of any bytes; what we write must stay readable: those are taken for Latin-1.
  const uint8_t plain = is_utf8(raw) ? 0xff : 0x7f;
  std::string out = "\"";
  for (const char c : raw) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<uint8_t>(c) < 0x20 || static_cast<uint8_t>(c) > plain) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<uint8_t>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Json::Json() = default;
Json::~Json() = default;
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::Json(std::nullptr_t) {}
Json::Json(bool value) : kind_(Kind::boolean), boolean_(value) {}
Json::Json(double value) : kind_(Kind::number), number_(value) {}
Json::Json(Exact integer)
    : kind_(Kind::number), number_(static_cast<double>(integer.value)), integer_(integer.value), is_integer_(true) {}
Json::Json(std::string value) : kind_(Kind::string), string_(std::move(value)) {}

const std::string& Json::source() const {
  static const std::string kNone;
  return source_ ? *source_ : kNone;
}

void Json::set_position(Position position, std::string source) {
  set_position(position, std::make_shared<const std::string>(std::move(source)));
}

void Json::set_position(Position position, std::shared_ptr<const std::string> source) {
  position_ = position;
  source_ = std::move(source);
}

Json Json::array(std::vector<Json> items) {
  Json value;
  value.kind_ = Kind::array;
  value.items_ = std::move(items);
  return value;
}

Json Json::object() {
  Json value;
  value.kind_ = Kind::object;
  return value;
}

const char* Json::kind_name() const {
  switch (kind_) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::number:
      return is_integer_ ? "an integer" : "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return "null";
}

std::string Json::where() const {
  return position_.line == 0 ? source() : text(source(), ":", position_.line, ":", position_.column);
}

void Json::wrong_kind(const char* wanted) const {
  const std::string at = where();
  throw Error(Blame::user, text(at, at.empty() ? "" : ": ", wanted, " is expected, this is ", kind_name()));
}

bool Json::as_bool() const {
  if (kind_ != Kind::boolean) wrong_kind("true or false");
  return boolean_;
}

int64_t Json::as_int() const {
  if (!is_integer_) wrong_kind("an integer");
  return integer_;
}

double Json::as_double() const {
  if (kind_ != Kind::number) wrong_kind("a number");
  return number_;
}

const std::string& Json::as_string() const {
  if (kind_ != Kind::string) wrong_kind("a string");
  return string_;
}

const std::vector<Json>& Json::items() const {
  if (kind_ != Kind::array) wrong_kind("a list");
  return items_;
}

const std::vector<Json::Member>& Json::members() const {
  if (kind_ != Kind::object) wrong_kind("an object");
  return members_;
}

const Json* Json::find(std::string_view key) const {
  for (const auto& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) {
  return const_cast<Json*>(std::as_const(*this).find(key));
}

const Json* Json::find_renamed(std::string_view key) const {
  if (const Json* value = find(key)) return value;
  const auto was = old_key_name(key);
  if (!was || !find(*was)) return nullptr;
  const std::string at = where();
  throw Error(Blame::user, text(at, at.empty() ? "" : ": ", "the key '", *was, "' is called '", key, "' now"),
              "rename it, or let this version write the file again");
}

const Json& Json::at(std::string_view key) const {
  if (const Json* value = find_renamed(key)) return *value;
  const std::string at = where();
  throw Error(Blame::user, text(at, at.empty() ? "" : ": ", "the key '", key, "' is missing"));
}

int64_t Json::int_or(std::string_view key, int64_t otherwise) const {
  const Json* value = find_renamed(key);
  return value && !value->is_null() ? value->as_int() : otherwise;
}

double Json::double_or(std::string_view key, double otherwise) const {
  const Json* value = find_renamed(key);
  return value && !value->is_null() ? value->as_double() : otherwise;
}

std::string Json::string_or(std::string_view key, const std::string& otherwise) const {
  const Json* value = find_renamed(key);
  return value && !value->is_null() ? value->as_string() : otherwise;
}

Json& Json::operator[](std::string_view key) {
  if (kind_ == Kind::null) kind_ = Kind::object;
  if (Json* value = find(key)) return *value;
  return append(std::string(key));
}

Json& Json::append(std::string key) {
  if (kind_ == Kind::null) kind_ = Kind::object;
  members_.push_back({std::move(key), Json(), {}});
  return members_.back().value;
}

void Json::push_back(Json item) {
  if (kind_ == Kind::null) kind_ = Kind::array;
  if (kind_ != Kind::array) wrong_kind("a list");
  items_.push_back(std::move(item));
}

void Json::erase(std::string_view key) {
  std::erase_if(members_, [&](const Member& member) { return member.key == key; });
}

size_t Json::size() const {
  return kind_ == Kind::object ? members_.size() : items().size();
}

bool Json::operator==(const Json& other) const {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::null:
      return true;
    case Kind::boolean:
      return boolean_ == other.boolean_;
    case Kind::number:
      return is_integer_ && other.is_integer_ ? integer_ == other.integer_ : number_ == other.number_;
    case Kind::string:
      return string_ == other.string_;
    case Kind::array:
      return items_ == other.items_;
    case Kind::object:
      return members_ == other.members_;
  }
  return false;
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

void Json::write(std::string& out, int indent, int depth) const {
  constexpr size_t kShortList = 16;  // scalars that fit on one line
  const auto scalar = [](const Json& item) { return !item.is_array() && !item.is_object(); };
  const bool one_line = indent < 0 || (kind_ == Kind::array && items_.size() <= kShortList &&
                                       std::all_of(items_.begin(), items_.end(), scalar));
  const auto new_line = [&](int level) {
    if (!one_line) out.append("\n").append(static_cast<size_t>(level) * static_cast<size_t>(indent), ' ');
  };
  const auto separate = [&](size_t index) {
    if (index > 0) out += one_line && indent >= 0 ? ", " : ",";
    new_line(depth + 1);
  };
  switch (kind_) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += boolean_ ? "true" : "false";
      break;
    case Kind::number:
      out += is_integer_ ? std::to_string(integer_) : number_text(number_);
      break;
    case Kind::string:
      out += quote_json(string_);
      break;
    case Kind::array:
      out += '[';
      for (size_t i = 0; i < items_.size(); ++i) {
        separate(i);
        items_[i].write(out, indent, depth + 1);
      }
      if (!items_.empty()) new_line(depth);
      out += ']';
      break;
    case Kind::object:
      out += '{';
      for (size_t i = 0; i < members_.size(); ++i) {
        separate(i);
        out += quote_json(members_[i].key);
        out += indent < 0 ? ":" : ": ";
        members_[i].value.write(out, indent, depth + 1);
      }
      if (!members_.empty()) new_line(depth);
      out += '}';
      break;
  }
}

}  // namespace lockstep::base
