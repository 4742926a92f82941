// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/objective.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/model/network.h"
#include "lockstep/objective/caption.h"
#include "lockstep/objective/classify.h"
#include "lockstep/objective/detect.h"
#include "lockstep/objective/instances.h"
#include "lockstep/objective/multilabel.h"
#include "lockstep/objective/nowcast.h"
#include "lockstep/objective/ordinal.h"
#include "lockstep/objective/regress.h"
#include "lockstep/objective/segment.h"

namespace lockstep::objective {
namespace {

bool gives(const std::string& network, const std::vector<std::string>& wanted) {
  const auto& given = model::interface_of(network).outputs;
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& output) {
    return std::find(given.begin(), given.end(), output) != given.end();
  });
}

std::string quoted(const std::vector<std::string>& names) {
  return base::text("'", base::join(names, "', '"), "'");
}

void check_network(const spec::Job& job, const Objective& objective) {
  if (job.model.name.empty() || gives(job.model.name, objective.outputs())) return;  // empty: not of the zoo
  std::vector<std::string> fitting = model::network_names();
  std::erase_if(fitting, [&](const std::string& name) { return !gives(name, objective.outputs()); });
  throw base::Error(
      base::Blame::user,
      base::text("model.name: ", job.model.name, " gives ", quoted(model::interface_of(job.model.name).outputs),
                 ", task ", name_of(job.task), " learns from ", quoted(objective.outputs())),
      base::text("networks for it: ", base::join(fitting, ", ")));
}

std::shared_ptr<const Objective> objective_of_task(const spec::Job& job, const std::vector<std::string>& classes) {
  switch (job.task) {
    case spec::Task::classify: {
      const bool one_head = job.model.name != "googlenet" || !job.model.auxiliary_heads;
      return std::make_shared<Classify>(job.training, label_weights(job.training, classes),
                                        one_head ? job.model.classes : 0);
    }
    case spec::Task::regress:
      return make_regress();
    case spec::Task::multilabel:
      return make_multilabel();
    case spec::Task::detect:
      return make_detect(job);
    case spec::Task::instances:
      return make_instances(job.instances);
    case spec::Task::ordinal:
      return make_ordinal();
    case spec::Task::nowcast:
      return make_nowcast(job.nowcast);
    case spec::Task::segment:
      return make_segment(job, classes);
    case spec::Task::caption:
      return make_caption(job);
    case spec::Task::text:
      return std::make_shared<Classify>(job.training, label_weights(job.training, classes), job.model.classes);
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const Objective> make_objective(const spec::Job& job, const std::vector<std::string>& classes) {
  auto objective = objective_of_task(job, classes);
  check_network(job, *objective);
  return objective;
}

std::string Objective::figure_text(const std::string& name, double value) const {
  return base::text(name, " ", base::fixed(value, 4));
}

model::NamedTensors Objective::average(const std::vector<model::NamedTensors>& views) const {
  model::NamedTensors mean = views.front();
  for (auto& [name, output] : mean) {
    for (size_t i = 1; i < views.size(); ++i) output = output + views[i].at(name);
    output = output / static_cast<double>(views.size());
  }
  return mean;
}

at::Tensor host_rows(const at::Tensor& output) {
  return output.to(at::kCPU, at::kFloat).contiguous();
}

}  // namespace lockstep::objective
