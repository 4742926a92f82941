// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/renamed.h"

#include <algorithm>
#include <iterator>

namespace lockstep::base {
namespace {

struct RenamedOption {
  std::string_view verb, was, is;
};
constexpr RenamedOption kOptions[] = {
    {"prep", "--mend", "--repair"},
    {"bench loader", "--pictures", "--count"},
};

// Of documents that a later command reads: dataset.json, the notes of a set that is being prepared, measured tables.
struct RenamedKey {
  std::string_view was, is;
};
constexpr RenamedKey kKeys[] = {
    {"pictures", "images"},
    {"without_picture", "without_image"},
    {"first_without_picture", "first_without_image"},
    {"top1", "score"},  // of a row of a measured table
};

}  // namespace

std::optional<std::string_view> new_option_name(std::string_view verb, std::string_view option) {
  const auto* found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                   [&](const RenamedOption& row) { return row.verb == verb && row.was == option; });
  return found == std::end(kOptions) ? std::nullopt : std::optional(found->is);
}

std::optional<std::string_view> new_key_name(std::string_view key) {
  const auto* found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const RenamedKey& row) { return row.was == key; });
  return found == std::end(kKeys) ? std::nullopt : std::optional(found->is);
}

std::optional<std::string_view> old_key_name(std::string_view key) {
  const auto* found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const RenamedKey& row) { return row.is == key; });
  return found == std::end(kKeys) ? std::nullopt : std::optional(found->was);
}

}  // namespace lockstep::base
