// SPDX-License-Identifier: Apache-2.0
// Whatever a job can choose can be planned: every choice and switch of the job's own table of fields is traced, and
// every number of its training and of its tasks' own sections that is off at 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/fields.h"
#include "lockstep/trace/trace.h"

namespace lockstep::trace {
namespace {

using base::text;

constexpr const char* kJob = R"({
  "name": "choices",
  "data": {"train": "synthetic", "samples": 64, "image_size": 64},
  "model": {"name": "resnet18", "classes": 4},
  "training": {"global_batch": 8, "phases": [{"epochs": 3}]}
})";

// What a choice needs beside itself, where the job's rules demand it.
const std::map<std::string, std::vector<std::string>> kBeside = {
    {"task=regress", {"model.classes=0"}},
    {"task=multilabel", {R"(multilabel.classes=["cat","dog","bird","fish"])"}},
    {"task=detect", {"model.name=fastbox_resnet18", "model.classes=2"}},
    {"detect.protocol=kitti", {"task=detect", "model.name=fastbox_resnet18", "model.classes=2"}},
    {"detect.protocol=coco", {"task=detect", "model.name=fastbox_resnet18", "model.classes=2"}},
    {"task=instances", {"model.name=maskrcnn_resnet18_fpn"}},
    {"instances.masks=true", {"task=instances", "model.name=maskrcnn_resnet18_fpn"}},
    {"instances.masks=false", {"task=instances", "model.name=fasterrcnn_resnet18_fpn"}},
    {"instances.sampler=random", {"task=instances", "model.name=maskrcnn_resnet18_fpn"}},
    {"instances.sampler=first", {"task=instances", "model.name=maskrcnn_resnet18_fpn"}},
    {"task=nowcast", {"model.name=convlstm"}},
    {"nowcast.loss=mse", {"task=nowcast", "model.name=rainnet"}},
    {"nowcast.loss=mae", {"task=nowcast", "model.name=convlstm"}},
    {"nowcast.loss=weighted", {"task=nowcast", "model.name=convlstm"}},
    {"nowcast.loss=log_cosh", {"task=nowcast", "model.name=convlstm"}},
    {"nowcast.recompute_steps=false", {"task=nowcast", "model.name=convlstm"}},
    {"nowcast.recompute_steps=true", {"task=nowcast", "model.name=convlstm"}},
    {"nowcast.flow=false", {"task=nowcast", "model.name=convlstm"}},
    {"nowcast.flow=true", {"task=nowcast", "model.name=convlstm"}},
    {"task=segment", {"model.name=fcdensenet56", "model.width=4"}},
    {"segment.dice=0.5", {"task=segment", "model.name=fcdensenet56", "model.width=4"}},
    {"segment.pixels=labels", {"task=segment", "model.name=fcdensenet56", "model.width=4"}},
    {"segment.pixels=objects", {"task=segment", "model.name=fcdensenet56", "model.width=4"}},
    {"task=caption", {"model.name=attend_resnet18", "model.width=4", "caption.hidden=8"}},
    {"task=text", {"model.name=hashed_linear"}},
    {"training.optimizer.epsilon_in_root=true", {"training.optimizer.name=rmsprop"}},
    {"training.schedule.scale=linear", {"training.schedule.base_batch=8"}},
    {"training.schedule.scale=sqrt", {"training.schedule.base_batch=8"}},
    {"training.schedule.name=step", {"training.schedule.step_epochs=[1]"}},
    {"training.early_stop.min_delta=0.5", {"training.early_stop.patience=1", "data.validate=val"}},
    {"training.batch_norm=ghost", {"training.ghost_batch=2"}},
    {"training.phases[0].cache_features=true", {"training.phases[0].train_from=head"}},
    {"training.phases[0].cache_flips=true",
     {"training.phases[0].cache_features=true", "training.phases[0].train_from=head"}},
};

bool is_switch(const spec::Section& section, const spec::Field& field, const std::string& key) {
  const bool length = std::count(section.one_of.begin(), section.one_of.end(), field.key) > 0;
  const auto tasks = spec::choices_of(spec::Task{});
  const bool of_task = std::count(tasks.begin(), tasks.end(), key.substr(0, key.find('.'))) > 0;
  return field.type == spec::Type::number && (of_task || key.starts_with("training.")) &&
         field.otherwise.as_double() == 0 && !length;
}

// Every "key=value" of the choices and switches below a section, in the order of the table.
void list_choices(const spec::Section& section, const std::string& prefix, std::vector<std::string>& sets) {
  for (const spec::Field& field : section.fields) {
    const std::string key = prefix + field.key;
    if (field.type == spec::Type::section) list_choices(*field.section, key + ".", sets);
    if (field.type == spec::Type::sections) list_choices(*field.section, key + "[0].", sets);
    std::vector<std::string> values = field.choices;
    if (field.type == spec::Type::boolean) values = {"false", "true"};
    if (is_switch(section, field, key)) values = {"0.5"};
    for (const std::string& value : values) sets.push_back(text(key, "=", value));
  }
}

std::vector<std::string> every_choice() {
  std::vector<std::string> sets;
  list_choices(spec::job_section(), "", sets);
  return sets;
}

class EveryChoice : public testing::TestWithParam<std::string> {};

TEST_P(EveryChoice, IsTraced) {
  std::vector<std::string> sets{GetParam()};
  if (const auto found = kBeside.find(GetParam()); found != kBeside.end()) {
    sets.insert(sets.end(), found->second.begin(), found->second.end());
  }
  spec::Job job = spec::parse_job(base::parse_json(kJob, "job.json"), sets);
  job.model.classes = std::max<int64_t>(1, job.model.classes);  // as it is resolved
  for (const int64_t ranks : {1, 2}) {
    Simulation simulation{.ranks = ranks, .evaluation_rows = 4, .steps = 2};
    simulation.phase = job.training.phases.front();
    const forecast::Recording recording = trace_step(job, simulation);
    EXPECT_EQ(recording.steps, 2);
    EXPECT_EQ(recording.estimated, std::vector<std::string>()) << "rows of lockstep/trace/table.cpp are missing";
    EXPECT_GT(trace_evaluation(job, simulation).operators.size(), 0U);
  }
}

std::string choice_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Job, EveryChoice, testing::ValuesIn(every_choice()), choice_name);

}  // namespace
}  // namespace lockstep::trace
