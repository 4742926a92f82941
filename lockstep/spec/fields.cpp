// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/fields.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/spec/other_names.h"

namespace lockstep::spec {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

std::string dotted(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "." + key;
}

bool is_quantity(Type type) {
  return type == Type::duration || type == Type::bytes || type == Type::rate;
}

bool has_kind_of(Type type, const Json& value) {
  const auto is_number = [](const Json& item) { return item.is_number(); };
  const auto is_text = [](const Json& item) { return item.is_string(); };
  const auto is_integer = [](const Json& item) { return item.is_integer(); };
  const auto each = [&](const auto& is_one) {
    return value.is_object() && std::all_of(value.members().begin(), value.members().end(),
                                            [&](const Json::Member& member) { return is_one(member.value); });
  };
  switch (type) {
    case Type::boolean:
      return value.kind() == Json::Kind::boolean;
    case Type::integer:
      return value.is_integer();
    case Type::number:
      return value.is_number();
    case Type::numbers:
      return value.is_array() && std::all_of(value.items().begin(), value.items().end(), is_number);
    case Type::texts:
      return value.is_string() ||
             (value.is_array() && std::all_of(value.items().begin(), value.items().end(), is_text));
    case Type::image_size:
      return value.is_integer() ||
             (value.is_array() && value.size() == 2 && value.items()[0].is_integer() && value.items()[1].is_integer());
    case Type::named_integers:
      return each(is_integer);
    case Type::named_numbers:
      return each(is_number);
    case Type::named_texts:
      return each(is_text);
    case Type::named_lists:
      return each([&](const Json& list) {
        return list.is_array() && std::all_of(list.items().begin(), list.items().end(), is_integer);
      });
    case Type::values:
      return value.is_array() && std::none_of(value.items().begin(), value.items().end(), [](const Json& item) {
               return item.is_array() || item.is_object() || item.is_null();
             });
    case Type::sections:
      return value.is_array();
    case Type::section:
    case Type::named_sections:
    case Type::document:
      return value.is_object();
    default:
      return value.is_string();
  }
}

bool within(const Check& check, double value) {
  return (check.low_open ? value > check.low : value >= check.low) &&
         (check.high_open ? value < check.high : value <= check.high);
}

// The dotted keys below `section` whose last part is `key`.
void find_elsewhere(const Section& section, const std::string& prefix, const std::string& key,
                    std::vector<std::string>& found) {
  for (const auto& field : section.fields) {
    if (field.key == key) found.push_back(dotted(prefix, key));
    if (field.section) find_elsewhere(*field.section, dotted(prefix, field.key), key, found);
  }
}

std::string wrong_type_fix(const Field& field, const Json& value) {
  if (value.is_null()) return text("leave the key out to get the default, ", field.otherwise.dump(-1));
  if (is_quantity(field.type) && value.is_number()) {
    const char* unit = field.type == Type::duration ? " h" : field.type == Type::bytes ? " GB" : " GB/s";
    return text("add the unit: \"", value.dump(-1), unit, "\"", field.type == Type::duration ? " or \"48:00:00\"" : "");
  }
  if (value.is_string() && (field.type == Type::number || field.type == Type::integer)) {
    return "write the number without quotes";
  }
  if (field.type == Type::choice) return text("one of: ", base::join(field.choices, ", "));
  if (field.type == Type::section) return text("write { ... } with ", base::join(field.section->keys(), ", "));
  return text("for example ", field.otherwise.dump(-1));
}

class Reader {
 public:
  Reader(const Section& root, Problems& problems) : root_(root), problems_(problems) {}

  void read(const Section& section, void* owner, const Json& object, const std::string& prefix) {
    if (!object.is_object()) {
      problems_.add(object, prefix, text("an object is expected, this is ", object.kind_name()), "write { ... }");
      return;
    }
    for (const auto& member : object.members()) {
      if (section.find(member.key) || (prefix.empty() && member.key == "$schema")) continue;
      unknown(section, object, member, prefix);
    }
    for (const auto& field : section.fields) {
      const Json* value = object.find(field.key);
      if (value) {
        read_field(field, owner, *value, dotted(prefix, field.key));
      } else if (section.demands(field)) {
        problems_.add(object, dotted(prefix, field.key), "is missing", text("add \"", field.key, "\": ", field.help));
      } else if (field.type == Type::section && field.absence == Absence::none) {  // it may hold required fields
        Json nothing = Json::object();
        nothing.set_position(object.position(), object.source());
        read(*field.section, field.open(owner), nothing, dotted(prefix, field.key));
      }
    }
    check_alternatives(section, object, prefix);
  }

 private:
  void unknown(const Section& section, const Json& object, const Json::Member& member, const std::string& prefix) {
    Json at;
    at.set_position(member.key_position, object.source());
    if (member.key_position.line == 0) at.set_position(member.value.position(), member.value.source());
    std::string fix = base::did_you_mean(member.key, section.keys());
    std::vector<std::string> elsewhere;
    find_elsewhere(root_, "", member.key, elsewhere);
    if (base::nearest(member.key, section.keys()).empty() && !elsewhere.empty()) {
      fix = text("it belongs to ", base::join(elsewhere, " or "));
    } else if (const auto key = key_by_other_name(root_, member.key)) {
      fix = text("it is called ", *key, " here");
    }
    problems_.add(at, dotted(prefix, member.key), "unknown key", fix);
  }

  void read_field(const Field& field, void* owner, const Json& value, const std::string& key) {
    if (value.is_null() && field.nullable) {
      if (field.absence == Absence::left_out) field.set(owner, value);
      return;
    }
    if (field.absence == Absence::empty && value.is_object() && value.size() == 0) return;
    if (!has_kind_of(field.type, value)) {
      problems_.add(value, key, text(type_name(field.type), " is expected, this is ", value.kind_name()),
                    wrong_type_fix(field, value));
      return;
    }
    if (field.type == Type::section) {
      read(*field.section, field.open(owner), value, key);
    } else if (field.type == Type::document) {
      read_inner(field, owner, value);
    } else if (field.type == Type::sections) {
      for (size_t i = 0; i < value.items().size(); ++i) {
        read(*field.section, field.open(owner), value.items()[i], text(key, "[", i, "]"));
      }
    } else if (field.type == Type::named_sections) {
      for (const auto& member : value.members()) {
        void* element = field.open(owner);
        field.name(element) = member.key;
        read(*field.section, element, member.value, dotted(key, member.key));
      }
    } else if (check_value(field, value, key)) {
      field.set(owner, value);
    }
  }

  // Its parser names the place itself, and its keys from its own top on.
  void read_inner(const Field& field, void* owner, const Json& value) {
    try {
      field.set(owner, value);
    } catch (const Error& error) {
      problems_.add(std::string(), "", error.what(), error.fix());
    }
  }

  bool check_value(const Field& field, const Json& value, const std::string& key) {
    if (field.type == Type::choice) return check_choice(field, value, key);
    if (field.type == Type::text) {
      if (!field.check.required || !value.as_string().empty()) return true;
      problems_.add(value, key, "must not be empty", field.help);
      return false;
    }
    if (field.type == Type::numbers || (field.type == Type::image_size && value.is_array())) {
      if (field.check.length > 0 && value.items().size() != field.check.length) {
        problems_.add(value, key, text(field.check.length, " numbers are expected, these are ", value.items().size()),
                      text("for example ", field.otherwise.dump(-1)));
        return false;
      }
      return std::all_of(value.items().begin(), value.items().end(),
                         [&](const Json& item) { return check_range(field, item, item.as_double(), key); });
    }
    if (!is_quantity(field.type)) return !value.is_number() || check_range(field, value, value.as_double(), key);
    try {
      return check_range(field, value, quantity_of(field.type, value), key);
    } catch (const Error& error) {
      problems_.add(value, key, error.what(), error.fix());
      return false;
    }
  }

  bool check_choice(const Field& field, const Json& value, const std::string& key) {
    const auto& names = field.choices;
    if (std::find(names.begin(), names.end(), value.as_string()) != names.end()) return true;
    problems_.add(value, key, text("'", value.as_string(), "' is not one of ", base::join(names, ", ")),
                  base::did_you_mean(value.as_string(), names));
    return false;
  }

  bool check_range(const Field& field, const Json& at, double number, const std::string& key) {
    if (within(field.check, number)) return true;
    problems_.add(at, key, text("must be ", check_text(field.check), ", is ", at.dump(-1)),
                  text(field.help, field.unit.empty() ? "" : ", in " + field.unit));
    return false;
  }

  void check_alternatives(const Section& section, const Json& object, const std::string& prefix) {
    std::vector<std::string> stated;
    for (const auto& key : section.one_of) {
      const Json* value = object.find(key);
      if (value && !(*value == section.find(key)->otherwise)) stated.push_back(key);
    }
    if (section.one_of.empty() || stated.size() == 1) return;
    const std::string all = base::join(section.one_of, ", ");
    if (stated.empty()) {
      problems_.add(object, prefix, text("none of ", all, " is given"),
                    text("give one of them, e.g. \"", section.one_of[0],
                         "\": ", section.find(section.one_of[0])->otherwise.is_array() ? "[...]" : "10"));
    } else {
      problems_.add(*object.find(stated[1]), dotted(prefix, stated[1]),
                    text("both ", stated[0], " and ", stated[1], " are given"), text("keep one of ", all));
    }
  }

  const Section& root_;
  Problems& problems_;
};

}  // namespace

const char* type_name(Type type) {
  switch (type) {
    case Type::boolean:
      return "true or false";
    case Type::integer:
      return "an integer";
    case Type::number:
      return "a number";
    case Type::text:
    case Type::choice:
      return "a string";
    case Type::duration:
      return "a duration with its unit, as a string,";
    case Type::bytes:
      return "an amount of memory with its unit, as a string,";
    case Type::rate:
      return "a rate with its unit, as a string,";
    case Type::numbers:
      return "a list of numbers";
    case Type::texts:
      return "a list of strings";
    case Type::image_size:
      return "a number of pixels, or [height, width],";
    case Type::named_integers:
      return "an object of integers";
    case Type::named_numbers:
      return "an object of numbers";
    case Type::named_texts:
      return "an object of strings";
    case Type::named_lists:
      return "an object of lists of integers";
    case Type::values:
      return "a list of strings, numbers, true or false";
    case Type::section:
    case Type::document:
      return "an object";
    case Type::sections:
      return "a list of objects";
    case Type::named_sections:
      return "an object of objects";
  }
  return "";
}

std::string check_text(const Check& check) {
  std::vector<std::string> parts;
  if (check.required) parts.emplace_back("required");
  if (check.length > 0) parts.push_back(text(check.length, " values"));
  if (check.low > -std::numeric_limits<double>::infinity()) {
    parts.push_back(text(check.low_open ? "greater than " : "at least ", Json(check.low).dump(-1)));
  }
  if (check.high < std::numeric_limits<double>::infinity()) {
    parts.push_back(text(check.high_open ? "less than " : "at most ", Json(check.high).dump(-1)));
  }
  return base::join(parts, " and ");
}

const Field* Section::find(std::string_view key) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

bool Section::demands(const Field& field) const {
  return field.check.required || (complete && field.absence != Absence::left_out);
}

std::vector<std::string> Section::keys() const {
  std::vector<std::string> all;
  for (const auto& field : fields) all.push_back(field.key);
  return all;
}

Json quantity_json(Type type, double value) {
  if (type == Type::duration) return base::exact_duration(value);
  if (type == Type::rate) return base::exact_rate(value);
  return base::exact_bytes(static_cast<int64_t>(value));
}

double quantity_of(Type type, const Json& value) {
  const std::string& words = value.as_string();
  if (type == Type::duration) return base::parse_duration(words);
  if (type == Type::rate) return base::parse_rate(words);
  return static_cast<double>(base::parse_bytes(words));
}

void Problems::add(const Json& at, const std::string& key, const std::string& what, const std::string& fix) {
  add(at.where(), key, what, fix);
}

void Problems::add(const std::string& where, const std::string& key, const std::string& what, const std::string& fix) {
  all_.push_back({text(where, where.empty() ? "" : ": ", key, key.empty() ? "" : ": ", what), fix});
}

void Problems::throw_if_any() const {
  constexpr size_t kMost = 20;
  if (all_.empty()) return;
  if (all_.size() == 1) throw Error(Blame::user, all_[0].what, all_[0].fix);
  std::string what = text(all_.size(), " problems in the document");
  for (size_t i = 0; i < all_.size() && i < kMost; ++i) {
    what += text("\n  ", all_[i].what, all_[i].fix.empty() ? "" : "\n    fix: ", all_[i].fix);
  }
  if (all_.size() > kMost) what += text("\n  and ", all_.size() - kMost, " more");
  throw Error(Blame::user, what, "`lockstep explain KEY` describes each key");
}

void read_document(const Section& root, void* owner, const Json& document, Problems& problems) {
  Reader(root, problems).read(root, owner, document, "");
}

Json write_document(const Section& root, const void* owner, Which which) {
  Json object = Json::object();
  for (const auto& field : root.fields) {
    if (field.present && !field.present(owner)) {
      if (field.absence == Absence::null) object[field.key] = Json();
      if (field.absence == Absence::empty) object[field.key] = Json::object();
    } else if (field.type == Type::section) {
      Json nested = write_document(*field.section, field.at(owner, 0), which);
      if (which == Which::all || nested.size() > 0) object[field.key] = std::move(nested);
    } else if (field.type == Type::sections) {
      Json nested = Json::array();
      for (size_t i = 0; i < field.size(owner); ++i) {
        nested.push_back(write_document(*field.section, field.at(owner, i), which));
      }
      if (which == Which::all || nested.size() > 0) object[field.key] = std::move(nested);
    } else if (field.type == Type::named_sections) {
      Json nested = Json::object();
      for (size_t i = 0; i < field.size(owner); ++i) {
        const void* element = field.at(owner, i);
        nested[field.name(const_cast<void*>(element))] = write_document(*field.section, element, which);
      }
      object[field.key] = std::move(nested);
    } else {
      Json value = field.get(owner);
      if (which == Which::all || !(value == field.otherwise)) object[field.key] = std::move(value);
    }
  }
  return object;
}

const Json& locate(const Json& document, std::string_view key) {
  const Json* at = &document;
  for (const auto& part : base::split(key, '.')) {
    const size_t bracket = part.find('[');
    const Json* next = at->is_object() ? at->find(part.substr(0, bracket)) : nullptr;
    if (!next) break;
    at = next;
    if (bracket == std::string::npos) continue;
    const size_t index = std::stoul(part.substr(bracket + 1));
    if (!at->is_array() || index >= at->items().size()) break;
    at = &at->items()[index];
  }
  return *at;
}

}  // namespace lockstep::spec
