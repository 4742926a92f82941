// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/text.h"
#include "lockstep/verbs/examples/examples.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::examples {
namespace {

const base::CommandLine& examples_line() {
  static const base::CommandLine line{
      "examples",
      "DIR",
      "copy the jobs, scripts and notebooks that the documentation speaks of",
      {{"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "DIR/documents has the five users' own jobs, each with the script run.sh that answers their question; a file "
      "that\n"
      "is there and differs is never overwritten.\n"
      "example: lockstep examples lockstep-examples"};
  return line;
}

base::Json names_of(const std::vector<base::Path>& paths) {
  base::Json names = base::Json::array();
  for (const auto& path : paths) names.push_back(path.string());
  return names;
}

}  // namespace

LOCKSTEP_VERB(examples)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(examples_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(examples_line()).c_str(), stdout), 0;
  const base::Path folder = arguments.only("folder");
  const Copied copied = copy_examples(base::embedded_files(), folder);
  base::Json result = base::Json::object();
  result["folder"] = folder.string();
  result["written"] = names_of(copied.written);
  result["unchanged"] = names_of(copied.unchanged);
  base::give(arguments, result,
             base::text(folder.string(), ": ", copied.written.size(), " files written, ", copied.unchanged.size(),
                        " were there already\n"));
  return 0;
}

}  // namespace lockstep::verbs::examples
