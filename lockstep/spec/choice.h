// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/text.h"

namespace lockstep::spec {

// The names in `list` ("a, b, c"), in order.
inline std::vector<std::string> split_choices(const char* list) {
  auto names = base::split(list, ',');
  for (auto& name : names) name = std::string(base::trim(name));
  return names;
}

}  // namespace lockstep::spec

// Declares an enum class and, in the same breath, its spelling in JSON, so that the two cannot differ.
// name_of(Precision::bf16) == "bf16"; choices_of(Precision{}) lists all.
#define LOCKSTEP_CHOICE(Name, ...)                        \
  enum class Name { __VA_ARGS__ };                        \
  inline std::vector<std::string> choices_of(Name) {      \
    return lockstep::spec::split_choices(#__VA_ARGS__);   \
  }                                                       \
  inline std::string name_of(Name value) {                \
    return choices_of(value)[static_cast<size_t>(value)]; \
  }
