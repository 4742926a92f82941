// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/image_size.h"

namespace lockstep::spec {

// The tables that declare each field of a document once. Parser, checks, printing, --set, explain, JSON Schema and
// docs/config.md all walk them.

enum class Type {
  boolean,
  integer,
  number,
  text,
  choice,
  duration,
  bytes,
  rate,
  numbers,
  texts,
  image_size,
  named_integers,
  named_numbers,
  named_texts,
  named_lists,  // of integers
  section,
  sections,
  document,        // of another kind, inside this one
  values,          // a list of strings, numbers, true and false
  named_sections,  // one each, by a name of the user's
};
const char* type_name(Type type);  // for people: "an integer", "a duration"

struct Check {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // low itself is refused
  bool high_open = false;  // high itself is refused
  bool required = false;   // must stand in the document, and not be empty
  size_t length = 0;       // of lists; 0: any
};
inline constexpr Check anything{};
inline constexpr Check positive{.low = 0, .low_open = true};
inline constexpr Check non_negative{.low = 0};
inline constexpr Check share{.low = 0, .high = 1};
inline constexpr Check positive_share{.low = 0, .high = 1, .low_open = true};
inline constexpr Check below_one{.low = 0, .high = 1, .high_open = true};
inline constexpr Check required{.required = true};
constexpr Check between(double low, double high) {
  return {.low = low, .high = high};
}
std::string check_text(const Check& check);  // "greater than 0", "at least 0 and at most 1", ""

// Values by name, in the order in which they stand in the document.
template <class Value>
using Named = std::vector<std::pair<std::string, Value>>;

// How a document says that an optional member has no value.
enum class Absence { none, null, left_out, empty };  // none: it always has one; empty: {}

struct Section;

struct Field {
  std::string key;
  Type type = Type::text;
  std::string unit;  // "samples", "epochs"; empty where the type says it all
  Check check;
  std::string help;                  // one line
  std::vector<std::string> choices;  // of a choice
  base::Json otherwise;              // the default, as it would stand in the document
  const Section* section = nullptr;  // of section, sections and named_sections
  const Section* inner = nullptr;    // of document: the other document's
  Absence absence = Absence::none;
  bool nullable = false;  // null is a value

  // Access to the member of its struct. `set` REQUIRES a value that passed the checks; of a document it throws what the
  // other document's parser throws.
  std::function<base::Json(const void* owner)> get;
  std::function<void(void* owner, const base::Json& value)> set;
  // Whether an optional member has a value.
  std::function<bool(const void* owner)> present;
  // Of section, sections and named_sections: how many there are, the i-th, and a fresh one (the only one of a section).
  std::function<size_t(const void* owner)> size;
  std::function<const void*(const void* owner, size_t index)> at;
  std::function<void*(void* owner)> open;
  // Of named_sections: the name of one, to be read and written.
  std::function<std::string&(void* element)> name;
};

struct Section {
  std::string name;
  std::string help;
  std::vector<Field> fields;
  std::vector<std::string> one_of;  // exactly one of these keys is stated; --set of one drops the others
  bool complete = false;            // a program writes it: no key is missing that is not optional

  const Field* find(std::string_view key) const;
  bool demands(const Field& field) const;  // its key must stand in the document
  std::vector<std::string> keys() const;
};

// A duration, an amount of memory or a rate: numbers in the struct, strings with a unit in the document.
base::Json quantity_json(Type type, double value);
double quantity_of(Type type, const base::Json& value);  // user error without a place when it is malformed

// What kind of member a field is about.
template <class Value>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;
template <class Value>
inline constexpr bool is_named = false;
template <class Value>
inline constexpr bool is_named<Named<Value>> = true;
template <class Value>
inline constexpr bool is_list = false;
template <class Value>
inline constexpr bool is_list<std::vector<Value>> = !is_named<std::vector<Value>>;

// Builds the Section of a struct:
//   Table<Link>("link", "a connection").add("name", &Link::name, "", anything, "what it is called").done()
template <class Owner>
class Table {
 public:
  Table(std::string name, std::string help) : section_{std::move(name), std::move(help), {}, {}} {}

  template <class Value>
  Table& add(const std::string& key, Value Owner::*member, const std::string& unit, Check check,
             const std::string& help) {
    Field field = make(key, type_of<Value>(), unit, check, help);
    if constexpr (std::is_enum_v<Value>) field.choices = choices_of(Value{});
    field.get = [member](const void* owner) { return json_of(as(owner).*member); };
    field.set = [member](void* owner, const base::Json& value) { assign(as(owner).*member, value); };
    return keep(std::move(field));
  }

  // A member that may have no value. Of a Value that is optional itself null is one.
  template <class Value>
  Table& maybe(const std::string& key, std::optional<Value> Owner::*member, Absence absence, const std::string& unit,
               Check check, const std::string& help) {
    Field field = make(key, type_of<Value>(), unit, check, help);
    field.absence = absence;
    field.nullable = absence == Absence::null || is_optional<Value>;
    field.present = [member](const void* owner) { return (as(owner).*member).has_value(); };
    field.get = [member](const void* owner) { return json_of(as(owner).*member); };
    field.set = [member](void* owner, const base::Json& value) { assign((as(owner).*member).emplace(), value); };
    return keep(std::move(field));
  }

  // A member that is a number here and a string with a unit in the document.
  template <class Value>
  Table& add(const std::string& key, Value Owner::*member, Type type, Check check, const std::string& help) {
    Field field = make(key, type, "", check, help);
    field.get = [member, type](const void* owner) {
      return quantity_json(type, static_cast<double>(as(owner).*member));
    };
    field.set = [member, type](void* owner, const base::Json& value) {
      as(owner).*member = static_cast<Value>(quantity_of(type, value));
    };
    return keep(std::move(field));
  }

  template <class Nested>
  Table& nest(const std::string& key, Nested Owner::*member, const Section& section, const std::string& help = "") {
    Field field = make(key, Type::section, "", anything, help.empty() ? section.help : help);
    field.section = &section;
    field.size = [](const void*) { return size_t{1}; };
    field.at = [member](const void* owner, size_t) -> const void* { return &(as(owner).*member); };
    field.open = [member](void* owner) -> void* { return &(as(owner).*member); };
    section_.fields.push_back(std::move(field));
    return *this;
  }

  template <class Nested>
  Table& maybe_nest(const std::string& key, std::optional<Nested> Owner::*member, Absence absence,
                    const Section& section) {
    Field field = make(key, Type::section, "", anything, section.help);
    field.section = &section;
    field.absence = absence;
    field.nullable = absence == Absence::null;
    field.present = [member](const void* owner) { return (as(owner).*member).has_value(); };
    field.size = [member](const void* owner) { return size_t{(as(owner).*member).has_value()}; };
    field.at = [member](const void* owner, size_t) -> const void* { return &*(as(owner).*member); };
    field.open = [member](void* owner) -> void* { return &(as(owner).*member).emplace(); };
    section_.fields.push_back(std::move(field));
    return *this;
  }

  // A whole document of another kind, which has its own parser and printer.
  template <class Nested>
  Table& document(const std::string& key, std::optional<Nested> Owner::*member, Absence absence, const Section& inner,
                  Nested (*parse)(const base::Json&), base::Json (*print)(const Nested&), const std::string& help) {
    Field field = make(key, Type::document, "", anything, help);
    field.inner = &inner;
    field.absence = absence;
    field.nullable = absence == Absence::null;
    field.present = [member](const void* owner) { return (as(owner).*member).has_value(); };
    field.get = [member, print](const void* owner) {
      const auto& nested = as(owner).*member;
      return nested ? print(*nested) : base::Json();
    };
    field.set = [member, parse](void* owner, const base::Json& value) { as(owner).*member = parse(value); };
    return keep(std::move(field));
  }

  template <class Nested>
  Table& list(const std::string& key, std::vector<Nested> Owner::*member, const Section& section) {
    Field field = make(key, Type::sections, "", anything, section.help);
    field.section = &section;
    field.otherwise = base::Json::array();
    field.size = [member](const void* owner) { return (as(owner).*member).size(); };
    field.at = [member](const void* owner, size_t index) -> const void* { return &(as(owner).*member)[index]; };
    field.open = [member](void* owner) -> void* { return &(as(owner).*member).emplace_back(); };
    section_.fields.push_back(std::move(field));
    return *this;
  }

  // Sections by a name of the user's, which is no key of theirs: {"lr": {...}, "momentum": {...}}.
  template <class Nested>
  Table& by_name(const std::string& key, std::vector<Nested> Owner::*member, std::string Nested::*name,
                 const Section& section) {
    list(key, member, section);
    Field& field = section_.fields.back();
    field.type = Type::named_sections;
    field.otherwise = base::Json::object();
    field.name = [name](void* element) -> std::string& { return static_cast<Nested*>(element)->*name; };
    return *this;
  }

  Table& one_of(std::vector<std::string> keys) {
    section_.one_of = std::move(keys);
    return *this;
  }

  Table& complete() {
    section_.complete = true;
    return *this;
  }

  Section done() { return std::move(section_); }

 private:
  static Owner& as(void* owner) { return *static_cast<Owner*>(owner); }
  static const Owner& as(const void* owner) { return *static_cast<const Owner*>(owner); }

  template <class Value>
  static base::Json json_of(const Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      return name_of(value);
    } else if constexpr (is_optional<Value>) {
      return value ? json_of(*value) : base::Json();
    } else if constexpr (is_named<Value>) {
      base::Json all = base::Json::object();
      for (const auto& [name, one] : value) all[name] = json_of(one);
      return all;
    } else if constexpr (is_list<Value>) {
      return base::Json::array_of(value);
    } else if constexpr (std::is_same_v<Value, ImageSize>) {
      return to_json(value);
    } else {
      return value;
    }
  }

  template <class Value>
  static void assign(Value& member, const base::Json& value) {
    if constexpr (std::is_enum_v<Value>) {
      const auto names = choices_of(Value{});
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == value.as_string()) member = static_cast<Value>(i);
      }
    } else if constexpr (is_optional<Value>) {
      if (!value.is_null()) assign(member.emplace(), value);
    } else if constexpr (is_named<Value>) {
      member.clear();
      for (const auto& one : value.members()) {
        member.emplace_back();
        member.back().first = one.key;
        assign(member.back().second, one.value);
      }
    } else if constexpr (is_list<Value>) {
      member.clear();
      if (value.is_string()) return assign(member.emplace_back(), value);  // a list of one, without its brackets
      for (const auto& item : value.items()) assign(member.emplace_back(), item);
    } else if constexpr (std::is_same_v<Value, ImageSize>) {
      member = image_size_of(value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      member = value.as_bool();
    } else if constexpr (std::is_same_v<Value, int64_t>) {
      member = value.as_int();
    } else if constexpr (std::is_same_v<Value, double>) {
      member = value.as_double();
    } else if constexpr (std::is_same_v<Value, base::Json>) {
      member = value;
    } else {
      member = value.as_string();
    }
  }

  template <class Value>
  static constexpr Type type_of() {
    if constexpr (is_optional<Value>) return type_of<typename Value::value_type>();
    if constexpr (std::is_same_v<Value, bool>) return Type::boolean;
    if constexpr (std::is_same_v<Value, int64_t>) return Type::integer;
    if constexpr (std::is_same_v<Value, double>) return Type::number;
    if constexpr (std::is_same_v<Value, std::vector<double>>) return Type::numbers;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) return Type::texts;
    if constexpr (std::is_same_v<Value, std::vector<base::Json>>) return Type::values;
    if constexpr (std::is_same_v<Value, ImageSize>) return Type::image_size;
    if constexpr (std::is_same_v<Value, Named<int64_t>>) return Type::named_integers;
    if constexpr (std::is_same_v<Value, Named<double>>) return Type::named_numbers;
    if constexpr (std::is_same_v<Value, Named<std::string>>) return Type::named_texts;
    if constexpr (std::is_same_v<Value, Named<std::vector<int64_t>>>) return Type::named_lists;
    if constexpr (std::is_enum_v<Value>) return Type::choice;
    return Type::text;
  }
  static Field make(const std::string& key, Type type, const std::string& unit, Check check, const std::string& help) {
    Field field;
    field.key = key;
    field.type = type;
    field.unit = unit;
    field.check = check;
    field.help = help;
    return field;
  }
  Table& keep(Field field) {
    const Owner fresh{};
    field.otherwise = field.get(&fresh);
    section_.fields.push_back(std::move(field));
    return *this;
  }

  Section section_;
};

// What is wrong with a document, gathered so that all of it is told at once.
class Problems {
 public:
  void add(const base::Json& at, const std::string& key, const std::string& what, const std::string& fix);
  void add(const std::string& where, const std::string& key, const std::string& what, const std::string& fix);
  bool empty() const { return all_.empty(); }
  void throw_if_any() const;  // user error with place, key, reason and fix of each

 private:
  struct Problem {
    std::string what;  // with place and key
    std::string fix;
  };
  std::vector<Problem> all_;
};

// Fills `owner`, the struct that `root` describes, from the document; `$schema` at the top is left to editors.
void read_document(const Section& root, void* owner, const base::Json& document, Problems& problems);

enum class Which { all, changed };  // changed: only what differs from the default
base::Json write_document(const Section& root, const void* owner, Which which);

// The value at "training.phases[0].epochs", or the innermost part of the way there that exists.
const base::Json& locate(const base::Json& document, std::string_view key);

}  // namespace lockstep::spec
