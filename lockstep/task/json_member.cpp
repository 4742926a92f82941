// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/json_member.h"

#include <charconv>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::task {

base::Json read_json_member(std::span<const std::byte> bytes) {
  return base::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "the sample's json",
                          {.max_bytes = bytes.size()});  // outlines of a crowded image are longer than a document
}

double number_in(const base::Json& document, const std::string& key, const char* setting) {
  const base::Json* value = document.find(key);
  if (value && value->is_number()) return value->as_double();
  if (value && value->is_string()) {  // tables keep numbers of more digits than a double has as they were written
    const std::string& words = value->as_string();
    double number = 0;
    const auto [end, code] = std::from_chars(words.data(), words.data() + words.size(), number);
    if (code == std::errc() && end == words.data() + words.size()) return number;
  }
  std::vector<std::string> keys;
  for (const auto& member : document.members()) keys.push_back(member.key);
  throw base::Error(base::Blame::user, base::text("no number '", key, "' (", setting, ") in the sample's json"),
                    base::text("it has ", base::join(keys, ", ")));
}

}  // namespace lockstep::task
