// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/planned_rows.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/planning/plan.h"
#include "lockstep/planning/wording.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::advice {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr double kHour = 3600;

// Samples of a step on each GPU. Where "batch" is to be read, it does not say.
int64_t gpu_batch(const MeasuredTable& table, const forecast::ScalingRow& row) {
  return table.epochs > 0 ? table.gpu_batch : std::llround(row.batch);
}

int64_t gpus_per_node(const MeasuredTable& table, const forecast::ScalingRow& row) {
  return table.epochs > 0 && row.nodes > 0 ? std::max<int64_t>(1, row.gpus / row.nodes) : table.network.per_node;
}

// The job as that row ran it, and no other levers than its own.
planning::PlanRequest request_of_row(const MeasuredTable& table, const forecast::ScalingRow& row, const spec::Job& job,
                                     const AdviceRequest& request) {
  planning::PlanRequest plan;
  plan.job = job;
  plan.job.training.global_batch = gpu_batch(table, row) * row.gpus;
  if (row.steps > 0) {
    plan.job.training.steps = std::llround(row.steps);
    plan.job.training.epochs = 0;
  }
  plan.lengths = planning::find_lengths(plan.job, 0, 0);
  plan.assumptions.per_node = gpus_per_node(table, row);
  if (table.network.inter_rate > 0) plan.assumptions.inter_rate = table.network.inter_rate;
  planning::MachineRequest machines;
  machines.on = {table.gpu};
  machines.gpus = {row.gpus};
  machines.per_node = gpus_per_node(table, row);
  plan.machine_options = planning::find_machine_options(machines, request.catalogue);
  plan.search = false;
  plan.tracer = request.tracer;
  return plan;
}

// The fastest way that fits, in the precision of the job; null: there is none.
const forecast::Option* fastest_alike(const planning::Plan& plan) {
  const forecast::Option* best = nullptr;
  for (const forecast::Option& option : plan.options) {
    const bool alike = option.levers.precision == plan.options.front().levers.precision;
    if (!alike || !option.trial.fits || !option.trial.time) continue;
    if (!best || option.trial.time->step.value < best->trial.time->step.value) best = &option;
  }
  return best;
}

}  // namespace

void plan_rows(MeasuredTable& table, const base::Path& folder, const AdviceRequest& request) {
  if (table.job.empty()) return;
  if (table.gpu.empty()) {
    throw Error(Blame::user, text("table '", table.title, "' has a job, but no gpu to plan it on"),
                "\"gpu\": \"p100\"");
  }
  const spec::Job job = weights::load_job(folder / table.job).job;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const forecast::ScalingRow& row = table.rows[i];
    if (row.batch < 1) {
      throw Error(Blame::user, text("table '", table.title, "' has a job and a row without batch"), "\"batch\": 5");
    }
    planning::PlanRequest asked = request_of_row(table, row, job, request);
    planning::Plan plan = planning::make_plan(asked, request.catalogue, request.calibration);
    if (!plan.options.front().trial.fits) {
      asked.search = true;
      plan = planning::make_plan(asked, request.catalogue, request.calibration);
    }
    if (table.network.inter_rate > 0 && table.network.gradient_bytes <= 0) {
      table.network.gradient_bytes = static_cast<double>(plan.parameters) * sizeof(float);
    }
    table.planned_network = plan.title;
    const forecast::Option* best = fastest_alike(plan);
    if (!best) continue;
    const double step = best->trial.time->step.value;
    table.figures[i].planned_with = planning::changes_text(*best);
    table.figures[i].planned_rate = static_cast<double>(gpu_batch(table, row) * row.gpus) / step;
    if (row.steps > 0) table.figures[i].planned_hours = row.steps * step / kHour;
  }
}

}  // namespace lockstep::advice
