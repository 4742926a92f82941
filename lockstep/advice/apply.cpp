// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/apply.h"

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/assumptions.h"
#include "lockstep/planning/document.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/planning/wording.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::advice {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using forecast::Option;

constexpr int64_t kBytesOfAWeight = 4;

// 1, 2, 4, ... and `most` itself.
std::set<int64_t> doublings(int64_t most) {
  std::set<int64_t> counts{most};
  for (int64_t n = 1; n < most; n *= 2) counts.insert(n);
  return counts;
}

// Which GPUs in which numbers the project speaks of.
std::map<std::string, std::set<int64_t>> machines_asked(const spec::Project& project) {
  std::map<std::string, std::set<int64_t>> asked;
  const int64_t most = std::max(project.gpus * 2, project.centre.max_gpus);
  asked[project.wanted] = doublings(project.centre.max_gpus > 0 ? project.centre.max_gpus : most);
  asked[project.wanted].insert(project.gpus);
  for (const auto& lesser : project.lesser) asked[lesser].merge(doublings(project.lesser_most));
  for (const auto& claim : project.claims) {
    if (claim.kind != spec::ClaimKind::not_checkable) asked[claim.on].insert(claim.gpus);
  }
  return asked;
}

std::vector<forecast::MachineOption> find_machine_options(const spec::Project& project, const AdviceRequest& request,
                                                          const forecast::Assumptions& assumptions) {
  std::vector<forecast::MachineOption> machine_options;
  for (const auto& [name, counts] : machines_asked(project)) {
    planning::MachineRequest one;
    one.on = {name};
    one.gpus = {counts.begin(), counts.end()};
    one.per_node = assumptions.per_node;
    one.here = [] { return planning::Here{}; };
    for (auto& machine_option : find_machine_options(one, request.catalogue))
      machine_options.push_back(std::move(machine_option));
  }
  return machine_options;
}

class Worker {
 public:
  Worker(const spec::Project& project, const AdviceRequest& request) : project_(project), request_(request) {
    for (const auto& words : request.arguments.values("--assume")) planning::assume(assumptions_, words);
    if (project.dataset_bytes > 0 && project.dataset_files > 0) {
      assumptions_.sample.stored_bytes =
          static_cast<double>(project.dataset_bytes) / static_cast<double>(project.dataset_files);
    }
    machine_options_ = find_machine_options(project, request, assumptions_);
  }

  planning::Plan plan(const spec::Experiment& experiment, const std::vector<std::string>& sets) const {
    planning::PlanRequest one;
    one.job = weights::load_job(experiment.job, sets).job;
    one.lengths = planning::find_lengths(one.job, 0, 0);
    one.machine_options = machine_options_;
    one.assumptions = assumptions_;
    one.tracer = request_.tracer;
    return planning::make_plan(one, request_.catalogue, request_.calibration);
  }

  // An experiment that `before` has with the same job and overrides is not planned again: a trace takes seconds.
  Estimate estimate(const spec::Experiment& experiment, const std::vector<Estimate>& before) const {
    const auto same = std::find_if(before.begin(), before.end(), [&](const Estimate& one) {
      return one.experiment.job == experiment.job && one.experiment.set == experiment.set;
    });
    Estimate result{experiment, same != before.end() ? same->plan : plan(experiment, experiment.set), {}, 0, 0, 0};
    const Tried tried = tried_on(result.plan, project_.wanted, project_.gpus);
    const Option* runs = tried.feasible();
    if (!runs) {
      throw Error(Blame::user,
                  text("'", experiment.name, "' does not run on ", project_.gpus, " x ", project_.wanted, ": ",
                       base::join(tried.written->why, "; ")),
                  "ask for more or larger GPUs: \"gpus\", \"wanted\"");
    }
    if (!runs->length) {
      throw Error(Blame::user, text("'", experiment.name, "': the length of a run is not known"),
                  text("data.samples in ", experiment.job, ", or training.steps"));
    }
    result.option = *runs;
    result.full_runs = static_cast<double>(experiment.runs * experiment.seeds) +
                       static_cast<double>(experiment.tuning_runs) * experiment.tuning_share;
    result.run_units = units_of(result.option);
    result.units = result.full_runs * result.run_units * (1 + project_.failure_margin);
    return result;
  }

 private:
  double units_of(const Option& option) const {
    switch (project_.centre.unit) {
      case spec::GrantUnit::gpu_hour:
        return option.costs.gpu_hours;
      case spec::GrantUnit::node_hour:
        return option.costs.node_hours;
      case spec::GrantUnit::core_hour:
        break;
    }
    if (option.costs.core_hours > 0) return option.costs.core_hours;
    throw Error(Blame::user,
                text("core-hours cannot be counted: the cores of a node of ", project_.wanted, " are not stated"),
                "a machine document with cores_per_node as \"wanted\", or \"unit\": \"gpu_hour\"");
  }

  const spec::Project& project_;
  const AdviceRequest& request_;
  forecast::Assumptions assumptions_;
  std::vector<forecast::MachineOption> machine_options_;
};

// Each experiment is spread evenly over its months.
std::vector<double> by_period(const Application& application) {
  const int64_t length = application.project.centre.period_months;
  std::vector<double> periods;
  for (const auto& estimate : application.estimates) {
    for (int64_t month = 0; month < estimate.experiment.months; ++month) {
      const auto period = static_cast<size_t>((estimate.experiment.from_month - 1 + month) / length);
      if (periods.size() <= period) periods.resize(period + 1, 0);
      periods[period] += estimate.units / static_cast<double>(estimate.experiment.months);
    }
  }
  return periods;
}

void count_disk(Application& application) {
  const spec::Project& project = application.project;
  int64_t checkpoints = 0;
  for (const auto& estimate : application.estimates) {
    const auto runs = static_cast<int64_t>(estimate.experiment.runs * estimate.experiment.seeds);
    const int64_t weights = estimate.plan.parameters * kBytesOfAWeight;
    checkpoints = std::max(checkpoints, planning::disk_bytes(estimate.plan, estimate.option));
    application.moved_out_bytes += runs * weights;
  }
  application.moved_in_bytes = project.dataset_bytes;
  application.moved_out_bytes += project.kept_bytes;
  // The collection as it comes and as shards, one run's checkpoints, the weights and results of all.
  application.disk_bytes = 2 * project.dataset_bytes + checkpoints + application.moved_out_bytes;
}

Json claim_json(const Checked& checked) {
  Json row = Json::object();
  row["says"] = checked.claim.says;
  row["verdict"] = words_of(checked.verdict);
  row["because"] = checked.because;
  return row;
}

Json estimate_json(const Estimate& estimate) {
  Json row = Json::object();
  row["name"] = estimate.experiment.name;
  row["full_runs"] = estimate.full_runs;
  row["run_seconds"] = estimate.option.length->total;
  row["run_units"] = estimate.run_units;
  row["units"] = estimate.units;
  row["jobs_of_a_run"] = estimate.option.length->jobs;
  row["memory_bytes"] = estimate.option.trial.memory.total;
  row["changes"] = Json::array_of(estimate.option.changes);
  return row;
}

}  // namespace

Application work_out(const spec::Project& project, const AdviceRequest& request) {
  const Worker worker(project, request);
  Application application;
  application.project = project;
  application.as_written = worker.plan(project.experiments.front(), {});
  application.checked = check_claims(project.claims, application.as_written);
  for (const auto& experiment : project.experiments) {
    application.estimates.push_back(worker.estimate(experiment, application.estimates));
  }
  for (const auto& estimate : application.estimates) {
    application.units += estimate.units;
    application.smallest_units += estimate.run_units * (1 + project.failure_margin);
  }
  application.periods = by_period(application);
  count_disk(application);
  return application;
}

Json to_json(const Application& application) {
  Json document = Json::object();
  document["project"] = spec::to_json(application.project);
  document["unit"] = name_of(application.project.centre.unit);
  document["units"] = application.units;
  document["smallest_units"] = application.smallest_units;
  document["periods"] = Json::array_of(application.periods);
  document["disk_bytes"] = application.disk_bytes;
  document["moved_in_bytes"] = application.moved_in_bytes;
  document["moved_out_bytes"] = application.moved_out_bytes;
  document["experiments"] = Json::array();
  for (const auto& estimate : application.estimates) document["experiments"].push_back(estimate_json(estimate));
  document["claims"] = Json::array();
  for (const auto& checked : application.checked) document["claims"].push_back(claim_json(checked));
  document["plan"] = to_json(application.as_written);
  return document;
}

Advice advise_apply(const AdviceRequest& request) {
  const spec::Project project = spec::load_project(request.arguments.only("project document"));
  const Application application = work_out(project, request);
  return {justification(application), to_json(application)};
}

}  // namespace lockstep::advice
