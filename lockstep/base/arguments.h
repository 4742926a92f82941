// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

class Json;

struct Option {
  std::string name;   // with its dashes: "--json"
  std::string value;  // what stands behind it in the help, "FILE"; empty for a switch
  std::string help;   // one line
};

// What a verb takes. One table serves parsing, checking and `--help`.
struct CommandLine {
  std::string verb;
  std::string positional;  // as in the usage line: "JOB", "SOURCE...", "" for none
  std::string summary;     // one line
  std::vector<Option> options;
  std::string notes;  // printed below the options: examples
};

// The parsed arguments of one verb.
class Arguments {
 public:
  std::vector<std::string> positional;

  bool has(std::string_view option) const;
  std::optional<std::string> value(std::string_view option) const;  // the last one given
  std::string value_or(std::string_view option, std::string otherwise) const;
  int64_t int_or(std::string_view option, int64_t otherwise) const;  // user error when it is no integer
  std::vector<std::string> values(std::string_view option) const;    // every one, in order
  // A file's name as it was meant where the program was started, for a verb that goes to another folder. "-" stays.
  void make_absolute(std::string_view option);
  // The only positional argument; user error otherwise.
  const std::string& only(std::string_view what) const;

 private:
  friend Arguments parse_arguments(const CommandLine& line, const std::vector<std::string>& words);
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// Words may come in any order; `--option value` and `--option=value` are the same; `--` ends the options.
// User error for an unknown option (nearest names), a missing value, or a positional argument where none is taken.
// `--help` is accepted always: ask has("--help").
Arguments parse_arguments(const CommandLine& line, const std::vector<std::string>& words);

std::string help_text(const CommandLine& line);

// A verb's result as JSON where `--json FILE` asks for it. True when that is standard output ("-"): then nothing else
// belongs there.
bool give_json(const Arguments& arguments, const Json& result);
// The same; the text for people goes to standard output where the JSON does not.
void give(const Arguments& arguments, const Json& result, const std::string& shown);

}  // namespace lockstep::base
