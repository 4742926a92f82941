// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::verbs {

// A verb's entry: the words behind `lockstep <verb>`; returns the exit code; throws base::Error.
using Entry = int(const std::vector<std::string>& words);

}  // namespace lockstep::verbs

// Stands in front of the entry of each verb's command.cpp: main finds it by name in the library of verbs.def.
//   LOCKSTEP_VERB(train)(const std::vector<std::string>& words) { ... }
#define LOCKSTEP_VERB(name) extern "C" __attribute__((visibility("default"))) int lockstep_verb_##name
