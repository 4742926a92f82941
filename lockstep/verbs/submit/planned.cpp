// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/submit/planned.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/command.h"
#include "lockstep/verbs/submit/refusal.h"

namespace lockstep::verbs {
namespace {

using base::Json;
using base::text;

std::string first_reason(const Json& option) {
  const Json* why = option.find("why");
  return why && why->is_array() && why->size() > 0 ? why->items().front().as_string() : "the plan says it does not fit";
}

double number_or(const Json& option, const char* key, double otherwise) {
  const Json* value = option.find(key);
  return value && value->is_number() ? value->as_double() : otherwise;
}

PlannedShape shape_of(const Json& option) {
  PlannedShape shape;
  shape.nodes = std::max<int64_t>(1, static_cast<int64_t>(number_or(option, "nodes", 1)));
  shape.feasible = option.at("feasible").as_bool();
  shape.seconds = number_or(option, "total_seconds", 0);
  shape.jobs = static_cast<int64_t>(number_or(option, "jobs", 0));
  if (!shape.feasible) shape.why_not = first_reason(option);
  return shape;
}

}  // namespace

const PlannedShape* Planned::of(int64_t nodes) const {
  const auto found =
      std::find_if(shapes.begin(), shapes.end(), [&](const PlannedShape& shape) { return shape.nodes == nodes; });
  return found == shapes.end() ? nullptr : &*found;
}

Planned shapes_of(const Json& plan) {
  Planned planned;
  for (const auto& option : plan.at("options").items()) {
    const PlannedShape shape = shape_of(option);
    const auto known = std::find_if(planned.shapes.begin(), planned.shapes.end(),
                                    [&](const PlannedShape& other) { return other.nodes == shape.nodes; });
    if (known == planned.shapes.end()) {
      planned.shapes.push_back(shape);
    } else if (shape.feasible && (!known->feasible || shape.seconds < known->seconds)) {
      *known = shape;
    }
  }
  return planned;
}

Planned ask_plan(const PlanQuestion& question) {
  const base::TemporaryFolder folder;
  const base::Path job = folder.path() / "job.json";
  const base::Path machine = folder.path() / "machine.json";
  const base::Path answer = folder.path() / "plan.json";
  base::write_json(job, spec::changed_json(question.job));
  spec::save_machine(machine, question.machine);
  // Only the job as written: the chain trains that one.
  std::vector<std::string> words{question.program, "plan",        job.string(), "--on",
                                 machine.string(), "--no-search", "--json",     answer.string()};
  if (question.machine.gpus_per_node > 0) {
    std::vector<std::string> counts;
    for (const int64_t nodes : question.nodes) counts.push_back(text(nodes * question.machine.gpus_per_node));
    words.insert(words.end(), {"--gpus", base::join(counts, ",")});
  }
  if (question.walltime > 0) {
    words.insert(words.end(), {"--set", text("limits.walltime=", base::exact_duration(question.walltime))});
  }
  const site::Answer said = site::ask(words, std::chrono::minutes(10));
  Planned planned;
  // With exit code 3 (nothing fits) the document is there as well: it has the reasons.
  if (std::filesystem::exists(answer)) planned = shapes_of(base::read_json(answer, {.max_bytes = size_t{64} << 20}));
  if (!said.good()) {
    planned.why_not = said.code == -1 ? "lockstep plan did not answer within 10 minutes" : in_one_line(said.err);
  }
  return planned;
}

Planned parse_hours(const std::string& words, double walltime) {
  Planned planned;
  for (const auto& item : base::split(words, ',')) {
    char* end = nullptr;
    const long long nodes = std::strtoll(item.c_str(), &end, 10);
    const bool begun = nodes > 0 && *end == '=';
    char* last = nullptr;
    const double hours = begun ? std::strtod(end + 1, &last) : 0;
    if (!begun || *last != '\0' || !std::isfinite(hours) || hours <= 0) {
      throw base::Error(base::Blame::user, text("--hours: '", item, "' is not NODES=HOURS"), "--hours 1=2.5,2=1.4");
    }
    PlannedShape shape;
    shape.nodes = nodes;
    shape.feasible = true;
    shape.seconds = hours * 3600;
    shape.jobs = walltime > 0 ? static_cast<int64_t>(std::ceil(shape.seconds / walltime)) : 1;
    planned.shapes.push_back(shape);
  }
  return planned;
}

}  // namespace lockstep::verbs
