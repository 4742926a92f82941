// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/workflow.h"

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/override.h"
#include "lockstep/spec/workflow_rules.h"

namespace lockstep::spec {
namespace {

using base::text;

constexpr Check at_least_one_of_it{.low = 1};

struct Kind {
  const char* key;
  std::vector<std::string> Stage::*words;
};
constexpr Kind kKinds[] = {{"copy", &Stage::copy}, {"prep", &Stage::prep},       {"train", &Stage::train},
                           {"eval", &Stage::eval}, {"predict", &Stage::predict}, {"command", &Stage::command}};

const Section& resources_section() {
  static const Section section =
      Table<StageResources>("resources", "what the stage may use")
          .add("nodes", &StageResources::nodes, "nodes", at_least_one_of_it, "of a job; here: one")
          .add("ranks", &StageResources::ranks, "ranks", non_negative, "on each node; 0: one, or one a GPU")
          .add("cores", &StageResources::cores, "cores", non_negative,
               "of each node; 0: all for prep, train, eval and predict, else one")
          .add("gpus", &StageResources::gpus, "GPUs", non_negative, "of each node")
          .add("memory", &StageResources::memory, Type::bytes, non_negative, "of each node; 0 B: not asked for")
          .add("walltime", &StageResources::walltime, Type::duration, non_negative,
               "of its job in a queue; none: the machine's limit")
          .add("jobs", &StageResources::jobs, "jobs", at_least_one_of_it,
               "one behind the other, where one walltime is too short for a stage that goes on")
          .done();
  return section;
}

const Section& stage_section() {
  static const Section section =
      Table<Stage>("stage", "one command, with what it reads and writes; by its name")
          .add("copy", &Stage::copy, "", anything, "files or folders that are copied to the output")
          .add("prep", &Stage::prep, "", anything, "words behind `lockstep prep`")
          .add("train", &Stage::train, "", anything, "words behind `lockstep train`; --run names the run folder")
          .add("eval", &Stage::eval, "", anything, "words behind `lockstep eval`")
          .add("predict", &Stage::predict, "", anything, "words behind `lockstep predict`")
          .add("command", &Stage::command, "", anything, "any program and its words, no shell in between")
          .add("inputs", &Stage::inputs, "", anything, "files and folders that it reads, by their content")
          .add("outputs", &Stage::outputs, "", anything, "files and folders that it writes, and no other stage")
          .add("after", &Stage::after, "", anything, "stages that must be done before it, without a file in between")
          .add("restartable", &Stage::restartable, "", anything,
               "the command goes on where it was ended, as train does, and predict with records (.jsonl)")
          .add("state", &Stage::state, "", anything,
               "of a restartable command: what it goes on from; put aside when it has to start over")
          .add("retries", &Stage::retries, "", non_negative, "so often it is tried again when it fails")
          .add("expected", &Stage::expected, Type::duration, non_negative, "wall time as long as it has not run")
          .add("scaling", &Stage::scaling, "samples/s", positive,
               "throughput by number of GPUs, for the Amdahl sum: {\"8\": 205.4, \"16\": 410.5}")
          .nest("resources", &Stage::resources, resources_section())
          .one_of({"copy", "prep", "train", "eval", "predict", "command"})
          .done();
  return section;
}

}  // namespace

std::string Stage::kind() const {
  for (const auto& kind : kKinds) {
    if (!(this->*kind.words).empty()) return kind.key;
  }
  return "command";
}

const std::vector<std::string>& Stage::words() const {
  for (const auto& kind : kKinds) {
    if (!(this->*kind.words).empty()) return this->*kind.words;
  }
  return command;
}

bool Stage::goes_on() const {
  return restartable || !train.empty() || record_file(*this).ends_with(".jsonl");
}

size_t Workflow::find(std::string_view stage) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].name == stage) return i;
    names.push_back(stages[i].name);
  }
  throw base::Error(base::Blame::user, text("the workflow has no stage '", stage, "'"),
                    base::did_you_mean(stage, names));
}

const Section& workflow_section() {
  static const Section section =
      Table<Workflow>("workflow", "stages from the data to the result, what each reads and writes, and what it may use")
          .add("name", &Workflow::name, "", anything, "of the workflow; its state is in <name>.workflow")
          .by_name("stages", &Workflow::stages, &Stage::name, stage_section())
          .done();
  return section;
}

namespace {

// A file of the workflow has one name, by which stages find what others write: from the document's folder.
void name_from(const std::vector<base::Path>& folders, std::vector<std::string>& paths) {
  for (auto& path : paths) {
    for (const auto& folder : folders) {
      const base::Path inner = base::Path(path).lexically_normal().lexically_relative(folder);
      if (!base::Path(path).is_absolute() || inner.empty() || *inner.begin() == "..") continue;
      path = inner.string();
      break;
    }
  }
}

// `folders`: names of the document's own.
Workflow parse_in(const std::vector<base::Path>& folders, const base::Json& document,
                  const std::vector<std::string>& sets) {
  base::Json copy = document;
  apply_sets(workflow_section(), copy, sets);
  Workflow workflow;
  Problems problems;
  read_document(workflow_section(), &workflow, copy, problems);
  for (auto& stage : workflow.stages) {
    for (auto* paths : {&stage.copy, &stage.inputs, &stage.outputs, &stage.state}) name_from(folders, *paths);
  }
  if (problems.empty()) check_workflow(workflow, copy, problems);
  problems.throw_if_any();
  return workflow;
}

}  // namespace

Workflow parse_workflow(const base::Json& document, const std::vector<std::string>& sets) {
  return parse_in({}, document, sets);
}

Workflow load_workflow(const base::Path& path, const std::vector<std::string>& sets) {
  const base::Json document = base::read_json(path);
  return parse_in({std::filesystem::absolute(path).lexically_normal().parent_path(),
                   std::filesystem::weakly_canonical(path).parent_path()},
                  document, sets);
}

base::Json to_json(const Workflow& workflow) {
  return write_document(workflow_section(), &workflow, Which::all);
}

}  // namespace lockstep::spec
