// sources: lockstep/base/*.cpp lockstep/spec/*.cpp
// SPDX-License-Identifier: Apache-2.0
// The first line is the words behind a --set (when it has a '='), the rest a job or machine document. Anything gives a
// document that prints and reads back equal, or a user error.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace {

using namespace lockstep;

template <class Parse>
using Document = std::invoke_result_t<Parse, const base::Json&, const std::vector<std::string>&>;

template <class Parse>
std::optional<Document<Parse>> read(Parse parse, const base::Json& document, const std::vector<std::string>& sets) {
  try {
    return parse(document, sets);
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
    return std::nullopt;
  }
}

template <class Parse>
void read_and_print(Parse parse, const base::Json& document, const std::vector<std::string>& sets) {
  const auto value = read(parse, document, sets);
  if (!value) return;
  const std::string printed = spec::to_json(*value).dump();
  if (!(parse(base::parse_json(printed, "resolved.json"), {}) == *value)) std::abort();
  if (!(parse(spec::changed_json(*value), {}) == *value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view content(reinterpret_cast<const char*>(data), size);
  const std::string_view first = content.substr(0, content.find('\n'));
  std::vector<std::string> sets;
  if (first.find('=') != std::string_view::npos) {
    sets.emplace_back(first);
    content.remove_prefix(std::min(content.size(), first.size() + 1));
  }
  base::Json document;
  try {
    document = base::parse_json(content, "fuzz.json");
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
    return 0;
  }
  read_and_print(spec::parse_job, document, sets);
  read_and_print(spec::parse_machine, document, sets);
  return 0;
}
