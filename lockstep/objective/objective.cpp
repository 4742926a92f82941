// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/objective.h"

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/objective/classify.h"
#include "lockstep/objective/multilabel.h"
#include "lockstep/objective/regress.h"

namespace lockstep::objective {

std::shared_ptr<const Objective> make_objective(const spec::Job& job) {
  switch (job.task) {
    case spec::Task::classify:
      return std::make_shared<Classify>(job.training);
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

at::Tensor host_rows(const at::Tensor& output) {
  return output.to(at::kCPU, at::kFloat).contiguous();
}

}  // namespace lockstep::objective
