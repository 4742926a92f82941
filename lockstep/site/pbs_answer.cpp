// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/pbs_answer.h"

#include <charconv>
#include <ctime>

#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

constexpr std::string_view kTitles[] = {"Job Id:", "Queue:", "Server:"};

// The name in the first line of a block. pbsnodes writes nothing but the name, behind an empty line; a variable of a
// job may hold a line end, so a job's block begins with its title alone.
std::optional<std::string> name_in(std::string_view line, bool after_gap, bool titled) {
  for (const auto title : kTitles) {
    if (line.starts_with(title)) return std::string(base::trim(line.substr(title.size())));
  }
  const bool plain = !line.empty() && line[0] != ' ' && line.find(' ') == std::string_view::npos;
  return plain && after_gap && !titled ? std::optional(std::string(line)) : std::nullopt;
}

}  // namespace

std::string PbsEntry::value(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

std::string unfold(std::string_view answer) {
  // Slurm's qstat folds nothing and indents by a tab what PBS indents by spaces.
  if (answer.find("\n\t") < answer.find("\n ")) return std::string(answer);
  std::string whole;
  whole.reserve(answer.size());
  for (size_t i = 0; i < answer.size(); ++i) {
    if (answer[i] == '\n' && i + 1 < answer.size() && answer[i + 1] == '\t') {
      ++i;
    } else {
      whole += answer[i];
    }
  }
  return whole;
}

std::vector<PbsEntry> parse_pbs(std::string_view answer) {
  std::vector<PbsEntry> all;
  bool after_gap = true;
  bool titled = false;
  for (const auto& line : base::split(unfold(answer), '\n')) {
    if (const auto name = name_in(line, after_gap, titled)) {
      titled = titled || name->size() != line.size();
      all.emplace_back().name = *name;
    } else if (const size_t equals = line.find(" = "); equals != std::string::npos && !all.empty()) {
      all.back().values.emplace(base::trim(std::string_view(line).substr(0, equals)),
                                base::trim(std::string_view(line).substr(equals + 3)));
    }
    after_gap = base::trim(line).empty();
  }
  return all;
}

std::optional<int64_t> pbs_bytes(std::string_view words) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view unit = words.substr(static_cast<size_t>(end - words.data()));
  if (unit.empty() || unit == "b") return number;
  constexpr std::string_view kUnits = "kmgtp";
  const size_t power = kUnits.find(unit[0]);
  if (unit.size() != 2 || unit[1] != 'b' || power == std::string_view::npos) return std::nullopt;
  const int shift = 10 * static_cast<int>(power + 1);
  return number > (INT64_MAX >> shift) ? INT64_MAX : number << shift;
}

std::optional<int64_t> pbs_time(const std::string& words) {
  std::tm parts{};
  if (!::strptime(words.c_str(), "%a %b %d %H:%M:%S %Y", &parts)) return std::nullopt;
  parts.tm_isdst = -1;
  return static_cast<int64_t>(std::mktime(&parts));
}

}  // namespace lockstep::site
