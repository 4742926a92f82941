// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "lockstep/base/console.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/renamed.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

const Option& known_option(const CommandLine& line, const std::string& name) {
  static const Option kHelp{"--help", "", "this text"};
  if (name == "--help" || name == "-h") return kHelp;
  for (const auto& option : line.options) {
    if (option.name == name) return option;
  }
  if (const auto now = new_option_name(line.verb, name)) {
    throw Error(Blame::user, text(name, " is called ", *now, " now"), text("write ", *now));
  }
  std::vector<std::string> names{"--help"};
  for (const auto& option : line.options) names.push_back(option.name);
  std::string fix = did_you_mean(name, names);
  const bool sets = std::find(names.begin(), names.end(), "--set") != names.end();
  if (sets && !fix.starts_with("did"))
    fix = text("a key of the job? --set KEY=VALUE, `lockstep explain` has them; ", fix);
  throw Error(Blame::user, text("lockstep ", line.verb, " has no option '", name, "'"), fix);
}

}  // namespace

bool Arguments::has(std::string_view option) const {
  return values_.find(option) != values_.end();
}

std::optional<std::string> Arguments::value(std::string_view option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::string Arguments::value_or(std::string_view option, std::string otherwise) const {
  return value(option).value_or(std::move(otherwise));
}

int64_t Arguments::int_or(std::string_view option, int64_t otherwise) const {
  const auto given = value(option);
  if (!given) return otherwise;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), number);
  if (error == std::errc() && end == given->data() + given->size()) return number;
  throw Error(Blame::user, text(option, " takes an integer, not '", *given, "'"));
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

void Arguments::make_absolute(std::string_view option) {
  const auto found = values_.find(option);
  if (found == values_.end()) return;
  for (auto& value : found->second) {
    if (!value.empty() && value != "-") value = std::filesystem::absolute(value).string();
  }
}

const std::string& Arguments::only(std::string_view what) const {
  if (positional.size() == 1) return positional.front();
  throw Error(Blame::user, text("one ", what, " is expected, ", positional.size(), " given"), "see --help");
}

Arguments parse_arguments(const CommandLine& line, const std::vector<std::string>& words) {
  Arguments parsed;
  bool options_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_ended || word.size() < 2 || word[0] != '-') {
      if (line.positional.empty()) {
        throw Error(Blame::user, text("lockstep ", line.verb, " takes no argument '", word, "'"), "see --help");
      }
      parsed.positional.push_back(word);
      continue;
    }
    if (word == "--") {
      options_ended = true;
      continue;
    }
    const size_t equals = word.find('=');
    const Option& option = known_option(line, word.substr(0, equals));
    const bool inline_value = equals != std::string::npos;
    if (option.value.empty()) {
      if (inline_value) throw Error(Blame::user, text(option.name, " takes no value"));
      parsed.values_[option.name].emplace_back();
      continue;
    }
    if (!inline_value && i + 1 == words.size()) {
      throw Error(Blame::user, text(option.name, " needs a value"), text(option.name, " ", option.value));
    }
    parsed.values_[option.name].push_back(inline_value ? word.substr(equals + 1) : words[++i]);
  }
  return parsed;
}

std::string help_text(const CommandLine& line) {
  std::string out = text("lockstep ", line.verb, ": ", line.summary, "\n\nusage: lockstep ", line.verb);
  if (!line.positional.empty()) out += " " + line.positional;
  out += " [options]\n";
  auto options = line.options;
  options.push_back({"--help", "", "this text"});
  size_t width = 0;
  const auto left = [](const Option& option) {
    return option.value.empty() ? option.name : option.name + " " + option.value;
  };
  for (const auto& option : options) width = std::max(width, left(option).size());
  for (const auto& option : options) {
    const std::string name = left(option);
    out += text("  ", name, std::string(width - name.size() + 2, ' '), option.help, "\n");
  }
  if (!line.notes.empty()) out += "\n" + line.notes + "\n";
  return out;
}

bool give_json(const Arguments& arguments, const Json& result) {
  const auto file = arguments.value("--json");
  if (file == "-") {
    std::fputs((result.dump() + "\n").c_str(), stdout);
    check_output();
    return true;
  }
  if (file) write_json(*file, result);
  return false;
}

void give(const Arguments& arguments, const Json& result, const std::string& shown) {
  if (!give_json(arguments, result)) std::fputs(shown.c_str(), stdout);
}

}  // namespace lockstep::base
