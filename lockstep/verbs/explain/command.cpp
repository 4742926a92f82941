// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs {

LOCKSTEP_VERB(explain)(const std::vector<std::string>& words) {
  const base::CommandLine line{"explain", "KEY...", "any key of any document", {}, ""};
  const base::Arguments arguments = base::parse_arguments(line, words);
  std::fputs(base::help_text(line).c_str(), stdout);
  return 0;
}

}  // namespace lockstep::verbs
