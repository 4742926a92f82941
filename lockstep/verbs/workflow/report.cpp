// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/workflow/report.h"

#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/folder.h"
#include "lockstep/spec/workflow_rules.h"
#include "lockstep/web/page.h"

namespace lockstep::verbs::workflow {
namespace {

using base::Json;
using base::text;
using lockstep::workflow::StagePlan;

const char* word_of(StagePlan::What what) {
  switch (what) {
    case StagePlan::What::up_to_date:
      return "done";
    case StagePlan::What::runs:
      return "out of date";
    case StagePlan::What::may_run:
      return "perhaps";
    case StagePlan::What::cannot:
      return "cannot run";
  }
  return "";
}

std::string queue_words(const site::BatchJob& job) {
  return text("job ", job.id, " is ", job.said, job.reason.empty() ? "" : text(" (", job.reason, ")"),
              job.on_nodes.empty() ? "" : text(" on ", job.on_nodes));
}

}  // namespace

std::vector<StageState> stage_states(const spec::Workflow& workflow, const lockstep::workflow::StatePaths& paths,
                                     const std::vector<StagePlan>& plans,
                                     const std::optional<lockstep::workflow::QueueState>& queue) {
  std::vector<StageState> states(workflow.stages.size());
  for (const auto& plan : plans) {
    const std::string& name = workflow.stages[plan.stage].name;
    StageState& state = states[plan.stage];
    state = {word_of(plan.what), plan.why};
    const auto holder = run::read_holder(paths.stage(name));
    const auto* job = queue ? queue->live(name) : nullptr;
    if (holder) {
      state = {"runs", text("process ", holder->pid, " on host ", holder->host, ", since ", holder->since)};
    } else if (job) {
      state = {job->seen->state == site::BatchJob::State::waiting ? "waits" : "runs", queue_words(*job->seen)};
    }
  }
  return states;
}

std::string states_text(const spec::Workflow& workflow, const std::vector<StageState>& states) {
  base::Table table({{"stage"}, {"state"}, {"why"}});
  for (size_t i = 0; i < states.size(); ++i) table.add({workflow.stages[i].name, states[i].word, states[i].why});
  return table.to_text();
}

Json gather_workflow(const spec::Workflow& workflow, const std::vector<StageState>& states,
                     const lockstep::workflow::Timeline& timeline, const lockstep::workflow::Amdahl& amdahl) {
  Json data = Json::object();
  data["name"] = workflow.name;
  data["timeline"] = to_json(timeline);
  data["amdahl"] = to_json(amdahl);
  const auto needs = spec::stage_needs(workflow);
  Json& stages = data["stages"] = Json::array();
  for (size_t i = 0; i < workflow.stages.size(); ++i) {
    const spec::Stage& stage = workflow.stages[i];
    Json row = Json::object();
    row["name"] = stage.name;
    row["kind"] = stage.kind();
    row["command"] = base::shell_words(stage.words());
    row["inputs"] = Json::array_of(spec::stage_inputs(stage));
    row["outputs"] = Json::array_of(stage.outputs);
    row["state"] = states[i].word;
    row["why"] = states[i].why;
    row["gpus"] = stage.resources.all_gpus();
    row["nodes"] = stage.resources.nodes;
    Json& before = row["needs"] = Json::array();
    for (const size_t need : needs[i]) before.push_back(workflow.stages[need].name);
    stages.push_back(std::move(row));
  }
  return data;
}

std::string render_workflow(const Json& data) {
  return web::render_page("workflow", data.at("name").as_string(), data);
}

}  // namespace lockstep::verbs::workflow
