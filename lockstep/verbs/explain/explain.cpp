// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/explain/explain.h"

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"
#include "lockstep/spec/other_names.h"
#include "lockstep/spec/override.h"
#include "lockstep/spec/plan.h"
#include "lockstep/spec/project.h"
#include "lockstep/spec/study.h"
#include "lockstep/spec/workflow.h"

namespace lockstep::verbs::explain {
namespace {

using base::Json;
using base::text;
using spec::Field;
using spec::Section;
using spec::Type;

const char* type_word(Type type) {
  switch (type) {
    case Type::boolean:
      return "true or false";
    case Type::integer:
      return "integer";
    case Type::number:
      return "number";
    case Type::text:
      return "string";
    case Type::choice:
      return "choice";
    case Type::duration:
      return "duration, e.g. \"48:00:00\", \"90 min\"";
    case Type::bytes:
      return "memory, e.g. \"128 GB\", \"16 GiB\"";
    case Type::rate:
      return "rate, e.g. \"12 GB/s\", \"100 Gbit/s\"";
    case Type::numbers:
      return "list of numbers";
    case Type::texts:
      return "list of strings, or one";
    case Type::image_size:
      return "integer, or [height, width]";
    case Type::named_integers:
      return "integers by name";
    case Type::named_numbers:
      return "numbers by name";
    case Type::named_texts:
      return "strings by name";
    case Type::named_lists:
      return "lists of integers by name";
    case Type::values:
      return "list of strings, numbers, true or false";
    case Type::document:
      return "document";
    case Type::section:
      return "section";
    case Type::sections:
      return "list of sections";
    case Type::named_sections:
      return "sections by name";
  }
  return "";
}

// Every dotted key of a table, sections included; lists without an index.
void collect_keys(const Section& section, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& field : section.fields) {
    keys.push_back(prefix + field.key);
    if (field.section) collect_keys(*field.section, prefix + field.key + ".", keys);
  }
}

struct FoundField {
  const Section* owner = nullptr;
  const Field* field = nullptr;
};

std::optional<FoundField> find_field(const Section& root, const std::string& key) {
  FoundField found{&root, nullptr};
  for (const auto& part : spec::split_key(key)) {
    if (found.field) found.owner = found.field->section;
    found.field = found.owner ? found.owner->find(part.key) : nullptr;
    if (!found.field) return std::nullopt;
  }
  return found;
}

Json section_json(const Section& section);

// How a document says that a field has no value; empty: it always has one.
const char* absence_word(spec::Absence absence) {
  switch (absence) {
    case spec::Absence::none:
      return "";
    case spec::Absence::null:
      return "null";
    case spec::Absence::left_out:
      return "left out";
    case spec::Absence::empty:
      return "{}";
  }
  return "";
}

bool has_default(const Section& owner, const Field& field) {
  return !field.section && !owner.demands(field) && field.absence == spec::Absence::none;
}

Json field_json(const Section& owner, const Field& field) {
  Json about = Json::object();
  about["key"] = field.key;
  about["help"] = field.help;
  about["type"] = type_word(field.type);
  if (!field.unit.empty()) about["unit"] = field.unit;
  if (has_default(owner, field)) about["default"] = field.otherwise;
  if (field.absence != spec::Absence::none) about["absent"] = absence_word(field.absence);
  if (const auto check = spec::check_text(field.check); !check.empty()) about["check"] = check;
  if (!field.choices.empty()) about["choices"] = Json::array_of(field.choices);
  if (field.section) {
    const Json inner = section_json(*field.section);
    for (const auto& member : inner.members()) about[member.key] = member.value;
  }
  return about;
}

Json section_json(const Section& section) {
  Json about = Json::object();
  if (!section.one_of.empty()) about["one_of"] = Json::array_of(section.one_of);
  Json& fields = about["fields"] = Json::array();
  for (const auto& field : section.fields) fields.push_back(field_json(section, field));
  return about;
}

Json document_json(const Section& root) {
  Json about = Json::object();
  about["key"] = root.name;
  about["document"] = root.name;
  about["help"] = root.help;
  about["type"] = "document";
  const Json inner = section_json(root);
  for (const auto& member : inner.members()) about[member.key] = member.value;
  return about;
}

Json found_json(const Section& root, const std::string& key, const FoundField& found) {
  Json about = field_json(*found.owner, *found.field);
  about["key"] = key;
  about["document"] = root.name;
  return about;
}

std::string padded(const std::string& word, size_t width) {
  return word + std::string(word.size() < width ? width - word.size() : 0, ' ') + "  ";
}

// One line a field: key, default, help.
std::string field_lines(const Json& fields) {
  size_t width = 0;
  for (const auto& field : fields.items()) width = std::max(width, field.at("key").as_string().size());
  std::string out;
  for (const auto& field : fields.items()) {
    out += text("  ", padded(field.at("key").as_string(), width), field.at("help").as_string());
    if (const Json* otherwise = field.find("default")) {
      out += text(" (", otherwise->dump(-1), ")");
    } else if (field.contains("fields")) {
      out += "; a section";
    } else if (field.string_or("check", "").starts_with("required")) {
      out += " (required)";
    }
    if (const Json* absent = field.find("absent")) out += text(" (or ", absent->as_string(), ")");
    out += "\n";
  }
  return out;
}

std::string sentence(std::string help) {
  if (!help.empty() && help[0] >= 'a' && help[0] <= 'z') help[0] = static_cast<char>(help[0] - 'a' + 'A');
  return help + ".";
}

void section_markdown(const Section& section, const std::string& prefix, const std::string& help, std::string& out) {
  if (!prefix.empty()) out += text("\n### `", prefix, "`\n\n", sentence(help), "\n");
  if (!section.one_of.empty()) {
    out +=
        text("Exactly one of ", base::join(section.one_of, ", "), " is given; `--set` of one replaces the others.\n");
  }
  out += "\n| key | type | unit | default | check | meaning |\n|---|---|---|---|---|---|\n";
  for (const auto& field : section.fields) {
    const std::string type = field.choices.empty() ? type_word(field.type) : base::join(field.choices, ", ");
    const std::string otherwise =
        has_default(section, field) ? "`" + field.otherwise.dump(-1) + "`" : absence_word(field.absence);
    out += text("| `", field.key, "` | ", type, " | ", field.unit, " | ", otherwise, " | ",
                spec::check_text(field.check), " | ", field.help, " |\n");
  }
  for (const auto& field : section.fields) {
    if (!field.section) continue;
    const char* list = field.type == Type::sections ? "[]" : field.type == Type::named_sections ? ".NAME" : "";
    section_markdown(*field.section, text(prefix, prefix.empty() ? "" : ".", field.key, list), field.help, out);
  }
}

[[noreturn]] void refuse_key(const std::string& key, const std::vector<std::string>& all) {
  const std::string last = key.substr(key.rfind('.') + 1);
  if (const auto meant = spec::key_by_other_name(spec::job_section(), last)) {
    throw base::Error(base::Blame::user, text("no document has the key '", key, "'"),
                      text("here it is called ", *meant, ": lockstep explain ", base::shell_word(*meant)));
  }
  std::vector<std::string> near = base::nearest(key, all);
  for (const auto& name : all) {  // a slip in the last part alone
    if (near.size() < 3 && !base::nearest(last, {name.substr(name.rfind('.') + 1)}).empty() &&
        std::find(near.begin(), near.end(), name) == near.end()) {
      near.push_back(name);
    }
  }
  throw base::Error(
      base::Blame::user, text("no document has the key '", key, "'"),
      near.empty() ? "`lockstep explain` lists the documents" : text("did you mean ", base::join(near, ", "), "?"));
}

std::vector<const Section*> documents() {
  return {&spec::job_section(),   &spec::machine_section(),  &spec::project_section(),
          &spec::study_section(), &spec::workflow_section(), &spec::plan_section()};
}

}  // namespace

const Section& document_section(const std::string& name) {
  std::vector<std::string> names;
  for (const Section* root : documents()) {
    if (name == root->name) return *root;
    names.push_back(root->name);
  }
  throw base::Error(base::Blame::user, text("there is no document '", name, "'"), base::did_you_mean(name, names));
}

Json explain_key(const std::string& key) {
  std::vector<std::string> all;
  std::vector<std::pair<const Section*, std::string>> ends;  // keys whose last part is `key`
  for (const Section* root : documents()) {
    if (key == root->name) return document_json(*root);
    const bool named = key.rfind(root->name + ".", 0) == 0;
    const std::string inner = named ? key.substr(root->name.size() + 1) : key;
    if (const auto found = find_field(*root, inner)) return found_json(*root, inner, *found);
    if (root->complete && !ends.empty()) continue;  // a key that people write comes first
    const size_t before = all.size();
    collect_keys(*root, "", all);
    for (size_t i = before; i < all.size(); ++i) {
      if (all[i].ends_with("." + key)) ends.emplace_back(root, all[i]);
    }
  }
  if (ends.size() == 1) return found_json(*ends[0].first, ends[0].second, *find_field(*ends[0].first, ends[0].second));
  if (ends.size() > 1) {
    std::vector<std::string> names;
    names.reserve(ends.size());
    for (const auto& end : ends) names.push_back(end.second);
    throw base::Error(base::Blame::user, text("'", key, "' is a key of several sections"),
                      text("name one: ", base::join(names, ", ")));
  }
  refuse_key(key, all);
}

Json explain_all() {
  Json all = Json::array();
  for (const Section* root : documents()) all.push_back(document_json(*root));
  return all;
}

std::string explanation_text(const Json& explanation) {
  const std::string key = explanation.at("key").as_string();
  std::string out = text(key, ": ", explanation.at("help").as_string(), "\n");
  if (const Json* fields = explanation.find("fields")) {
    if (const Json* one_of = explanation.find("one_of")) {
      out += text("  exactly one of ", one_of->dump(-1), " is given\n");
    }
    return out + field_lines(*fields);
  }
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += text("  ", padded(name, 8), value, "\n");
  };
  line("document", explanation.at("document").as_string());
  line("type", explanation.at("type").as_string());
  if (const Json* choices = explanation.find("choices")) {
    std::vector<std::string> names;
    names.reserve(choices->size());
    for (const auto& choice : choices->items()) names.push_back(choice.as_string());
    line("one of", base::join(names, ", "));
  }
  line("unit", explanation.string_or("unit", ""));
  if (const Json* otherwise = explanation.find("default")) line("default", otherwise->dump(-1));
  line("or", explanation.string_or("absent", ""));
  line("check", explanation.string_or("check", ""));
  return out;
}

std::string overview_text() {
  std::string out;
  for (const Section* root : documents()) {
    out += explanation_text(document_json(*root)) + "\n";
  }
  return out +
         "`lockstep explain training` lists a section, `lockstep explain training.global_batch` describes one key,\n"
         "`lockstep explain --schema job` prints the JSON Schema for editors, `lockstep explain --check job.json`\n"
         "checks a file and prints it with every default.\n";
}

std::string config_markdown() {
  std::string out =
      "<!-- Made by `lockstep explain --markdown`; do not edit. -->\n"
      "# Documents\n\n"
      "Every key of every document, from the tables that the program itself parses with. Documents are JSON in UTF-8, "
      "at\n"
      "most 1 MiB (a plan 256), with `//` and `/* */` comments; an unknown key is an error. `--set "
      "training.global_batch=512`\n"
      "overrides any key on the command line. `lockstep explain KEY` prints one entry, `lockstep explain --schema job` "
      "a\n"
      "JSON Schema for editors.\n";
  for (const Section* root : documents()) {
    out += text("\n## The ", root->name, " document\n\n", sentence(root->help), "\n");
    section_markdown(*root, "", root->help, out);
  }
  return out;
}

}  // namespace lockstep::verbs::explain
