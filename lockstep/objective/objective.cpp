// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/objective.h"

#include <ATen/TensorOperators.h>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/objective/classify.h"
#include "lockstep/objective/multilabel.h"
#include "lockstep/objective/regress.h"

namespace lockstep::objective {

std::shared_ptr<const Objective> make_objective(const spec::Job& job, const std::vector<std::string>& classes) {
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
  }
  return nullptr;
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
