// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"
#include "lockstep/spec/plan.h"
#include "lockstep/spec/project.h"
#include "lockstep/spec/schema.h"
#include "lockstep/spec/study.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/verbs/explain/explain.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::explain {
namespace {

const base::CommandLine& explain_line() {
  static const base::CommandLine line{
      "explain",
      "[KEY...]",
      "any key of any document, with type, unit, default and check",
      {{"--schema", "",
        "print the JSON Schema of the document KEY: job (default), machine, project, study, workflow or plan"},
       {"--markdown", "", "print every key of every document as docs/config.md"},
       {"--check", "FILE",
        "read the job (with KEY machine, project, study, workflow or plan: that) in FILE; print it with every default"},
       {"--set", "KEY=VALUE", "with --check: override a key; may be given more than once"},
       {"--json", "FILE", "write the result as JSON (- = standard output)"}},
      "examples: lockstep explain training.global_batch\n"
      "          lockstep explain --check examples/shapes.json --set training.epochs=2"};
  return line;
}

base::Json check_document(const std::string& kind, const base::Path& path, const std::vector<std::string>& sets) {
  document_section(kind);  // refuses a kind that does not exist
  if (kind == "plan") return spec::to_json(spec::load_plan(path));
  if (kind == "project") return spec::to_json(spec::load_project(path));
  if (kind == "workflow") return spec::to_json(spec::load_workflow(path, sets));
  if (kind == "study") return spec::to_json(spec::load_study(path, sets));
  if (kind == "machine") {
    const spec::Machine machine = spec::load_machine(path, sets);
    catalogue::check_machine(machine, catalogue::load_catalogue(), base::read_json(path));
    return spec::to_json(machine);
  }
  return spec::to_json(weights::load_job(path, sets).job);
}

}  // namespace

LOCKSTEP_VERB(explain)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(explain_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(explain_line()).c_str(), stdout), 0;
  const auto& keys = arguments.positional;
  base::Json result = base::Json::array();
  std::string shown;
  if (arguments.has("--schema") || arguments.has("--check")) {
    if (keys.size() > 1)
      throw base::Error(base::Blame::user, "one document is expected",
                        "job, machine, project, study, workflow or plan");
    const std::string kind = keys.empty() ? "job" : keys[0];
    result = arguments.has("--schema") ? spec::json_schema(document_section(kind))
                                       : check_document(kind, *arguments.value("--check"), arguments.values("--set"));
    shown = result.dump() + "\n";
  } else if (arguments.has("--markdown")) {
    result = explain_all();
    shown = config_markdown();
  } else if (keys.empty()) {
    result = explain_all();
    shown = overview_text();
  } else {
    for (const auto& key : keys) {
      result.push_back(explain_key(key));
      shown += explanation_text(result.items().back());
    }
  }
  base::give(arguments, result, shown);
  return 0;
}

}  // namespace lockstep::verbs::explain
