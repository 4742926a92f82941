// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/watching/compare.h"

namespace lockstep::verbs::diff {

LOCKSTEP_VERB(diff)(const std::vector<std::string>& words) {
  const base::CommandLine line{"diff",
                               "RUN RUN...",
                               "what differs between runs: settings, circumstances, figures",
                               {{"--json", "FILE", "the same as JSON (- = standard output, without the text)"}},
                               "Reads job.json and journal.jsonl of each run: also of one that is under way or broke "
                               "off.\n"
                               "examples: lockstep diff runs/small-lr runs/large-lr\n"
                               "          lockstep diff quickstart/run quickstart/run"};
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  if (arguments.positional.size() < 2) {
    throw base::Error(base::Blame::user,
                      base::text("two run folders or more are expected, there are ", arguments.positional.size()),
                      "lockstep diff RUN RUN");
  }
  std::vector<run::RunPaths> runs;
  for (const std::string& folder : arguments.positional) runs.push_back(run::open_run(folder));
  const watching::Differences differences = watching::compare_runs(runs);
  base::give(arguments, to_json(differences), to_text(differences));
  return 0;
}

}  // namespace lockstep::verbs::diff
