// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/original_names.h"

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace lockstep::shards {
namespace {

// The line's key without reading all of it: there may be millions of lines, and few are asked for.
std::string key_in(std::string_view line) {
  constexpr std::string_view kBefore = "{\"key\":\"";
  std::string plain;
  for (const char c : line.substr(0, 400)) {
    if (c != ' ') plain += c;
  }
  if (!plain.starts_with(kBefore)) return "";
  return plain.substr(kBefore.size(), plain.find('"', kBefore.size()) - kBefore.size());
}

}  // namespace

std::string name_line(std::string_view key, std::string_view name) {
  base::Json line = base::Json::object();
  line["key"] = key;
  line["name"] = name;
  return line.dump(-1) + "\n";
}

std::map<std::string, std::string> read_names(const base::Path& folder, const std::set<std::string>& keys) {
  std::map<std::string, std::string> names;
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder / kNames, error)) return names;
  const base::MappedFile file(folder / kNames);
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  for (size_t begin = 0; begin < all.size() && names.size() < keys.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::string_view line = all.substr(begin, end - begin);
    begin = end + 1;
    if (!keys.contains(key_in(line))) continue;
    try {
      const base::Json entry = base::parse_json(line, kNames);
      names[entry.at("key").as_string()] = entry.at("name").as_string();
    } catch (const base::Error& damaged) {
      if (damaged.blame() != base::Blame::user) throw;
    }
  }
  return names;
}

}  // namespace lockstep::shards
