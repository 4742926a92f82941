// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/override.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/other_names.h"

namespace lockstep::spec {
namespace {

constexpr std::string_view kSetSource = "--set ";

bool comes_from_set(const base::Json& value) {
  return value.source().rfind(kSetSource, 0) == 0;
}

base::Json parse_set_value(const Field& field, const std::string& words, const std::string& source) {
  const bool plain = field.type == Type::text || field.type == Type::choice || field.type == Type::duration ||
                     field.type == Type::bytes || field.type == Type::rate;
  base::Json value(words);
  if (!plain || words.starts_with('"')) {
    try {
      value = base::parse_json(words, source);
    } catch (const base::Error&) {  // not JSON: the string stays, and the field's check speaks
    }
  }
  value.set_position({}, source);
  return value;
}

// One --set on its way down the document.
class Override {
 public:
  explicit Override(const std::string& words) : source_(std::string(kSetSource) + words) {
    if (!base::is_utf8(words)) {  // it would come back from the run's job.json as something else
      throw base::Error(base::Blame::user, base::text(source_, ": is not valid UTF-8"),
                        "a document holds text; rename a file whose name is none");
    }
    const size_t equals = words.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw base::Error(base::Blame::user, base::text(source_, ": '=' is missing"),
                        "--set KEY=VALUE, e.g. --set training.global_batch=512");
    }
    key_ = words.substr(0, equals);
    value_ = words.substr(equals + 1);
    parts_ = split_key(key_);
  }

  void apply(const Section& root, base::Json& document) {
    root_ = &root;
    put(root, document, parts_);
  }

 private:
  void put(const Section& section, base::Json& object, std::span<const KeyPart> way) const {
    const KeyPart& part = way.front();
    const Field* field = section.find(part.key);
    if (!field) refuse("there is no such key", fix_for(section, part.key));
    if (!object.is_object()) object = fresh(base::Json::object());
    drop_alternatives(section, object, part.key);
    base::Json& slot = object[part.key];
    if (slot.is_null()) slot = fresh(field->type == Type::sections ? base::Json::array() : base::Json::object());
    if (part.index >= 0 && field->type != Type::sections) refuse(base::text("'", part.key, "' is not a list"), "");
    if (way.size() == 1 && part.index < 0) {
      slot = parse_set_value(*field, value_, source_);
      return;
    }
    if (field->type == Type::named_sections) return put_named(*field, slot, way.subspan(1));
    if (!field->section) refuse(base::text("'", part.key, "' is a value and has no keys of its own"), "");
    if (field->type == Type::section) return put(*field->section, slot, way.subspan(1));
    put_element(*field, slot, way);
  }

  // One of those that the document names; a name may have dots in it.
  void put_named(const Field& field, base::Json& object, std::span<const KeyPart> way) const {
    std::vector<std::string> names;
    if (object.is_object()) {
      for (const auto& member : object.members()) names.push_back(member.key);
    }
    std::string name;
    for (size_t i = 0; i + 1 < way.size(); ++i) {
      name += base::text(i == 0 ? "" : ".", way[i].key);
      if (std::count(names.begin(), names.end(), name) > 0) {
        return put(*field.section, object[name], way.subspan(i + 1));
      }
    }
    refuse(base::text("'", field.key, "' has no '", way.front().key, "'"), base::did_you_mean(way.front().key, names));
  }

  void put_element(const Field& field, base::Json& list, std::span<const KeyPart> way) const {
    const auto index = static_cast<size_t>(way.front().index);
    if (way.front().index < 0)
      refuse(base::text("'", field.key, "' is a list"), base::text("name one: ", field.key, "[0]"));
    if (!list.is_array() || index > list.size()) {
      refuse(base::text("the list has ", list.is_array() ? list.size() : 0, " elements"), "count from 0");
    }
    std::vector<base::Json> items = list.items();
    if (index == items.size()) items.push_back(fresh(base::Json::object()));
    if (way.size() == 1) {
      items[index] = parse_set_value(field, value_, source_);
    } else {
      put(*field.section, items[index], way.subspan(1));
    }
    const base::Position position = list.position();
    const std::string source = list.source();
    list = base::Json::array(std::move(items));
    list.set_position(position, source);
  }

  // Whoever sets training.steps means it instead of the file's training.epochs.
  void drop_alternatives(const Section& section, base::Json& object, const std::string& key) const {
    const auto& keys = section.one_of;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) return;
    for (const auto& other : keys) {
      const base::Json* value = object.find(other);
      if (other != key && value && !comes_from_set(*value)) object.erase(other);
    }
  }

  std::string fix_for(const Section& section, const std::string& key) const {
    const auto other = key_by_other_name(*root_, key);
    if (!other) return base::did_you_mean(key, section.keys());
    return base::text("it is called ", *other,
                      " here: ", base::shell_words({"--set", base::text(*other, "=", value_)}));
  }

  base::Json fresh(base::Json value) const {
    value.set_position({}, source_);
    return value;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& fix) const {
    throw base::Error(base::Blame::user, base::text(source_, ": ", key_, ": ", what), fix);
  }

  std::string source_;
  std::string key_;
  std::string value_;
  std::vector<KeyPart> parts_;
  const Section* root_ = nullptr;
};

}  // namespace

std::vector<KeyPart> split_key(const std::string& key) {
  std::vector<KeyPart> parts;
  for (const auto& part : base::split(key, '.')) {
    const size_t bracket = part.find('[');
    KeyPart taken{part.substr(0, bracket), -1};
    if (bracket != std::string::npos) {
      const char* first = part.data() + bracket + 1;
      const char* last = part.data() + part.size();
      int64_t index = -1;
      const auto [end, error] = std::from_chars(first, last, index);
      if (error != std::errc() || end + 1 != last || *end != ']' || index < 0 || index > 1000) {
        throw base::Error(base::Blame::user, base::text("'", key, "' is not a key"),
                          "write lists as training.phases[0]");
      }
      taken.index = index;
    }
    parts.push_back(std::move(taken));
  }
  return parts;
}

void apply_sets(const Section& root, base::Json& document, const std::vector<std::string>& sets) {
  for (const auto& words : sets) Override(words).apply(root, document);
}

}  // namespace lockstep::spec
