// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/study.h"

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/spec/override.h"

namespace lockstep::spec {
namespace {

using base::text;

constexpr Check at_least_one{.low = 1};
constexpr Check at_least_two{.low = 2};

const Section& dimension_section() {
  static const Section section =
      Table<Dimension>("dimension", "the values that a key may take, by its name")
          .add("log", &Dimension::log, "", anything, "from lowest to highest, evenly by their logarithm: [1e-4, 0.1]")
          .add("range", &Dimension::range, "", anything, "from lowest to highest, evenly: [0.8, 0.99]")
          .add("choice", &Dimension::choice, "", anything, "one of these")
          .add("integer", &Dimension::integer, "", anything, "whole numbers; a job's key says so by itself")
          .add("step", &Dimension::step, "", non_negative, "distance of the values of a range; 0: any value")
          .add("points", &Dimension::points, "values", non_negative, "sampler grid: of a range without step")
          .add("when", &Dimension::when, "", anything, "only where these other keys have these values")
          .one_of({"log", "range", "choice"})
          .done();
  return section;
}

const Section& budget_section() {
  static const Section section =
      Table<StudyBudget>("budget",
                         "what the study may cost, all sessions together; no trial starts that would exceed it")
          .add("node_hours", &StudyBudget::node_hours, "node-hours", non_negative, "0: no limit")
          .add("money", &StudyBudget::money, "", non_negative, "in the currency of the price; 0: no limit")
          .add("price", &StudyBudget::price, "per node-hour", non_negative, "what a node-hour costs")
          .add("walltime", &StudyBudget::walltime, Type::duration, non_negative,
               "of one session; the scheduler's own limit holds as well")
          .done();
  return section;
}

const Section& asha_section() {
  static const Section section =
      Table<Asha>("asha", "successive halving without waiting (Li et al. 2018), with scheduler asha")
          .add("first", &Asha::first, "epochs", at_least_one, "behind which trials are first compared")
          .add("factor", &Asha::factor, "", at_least_two, "one in so many goes on, to a rung so many times as far")
          .done();
  return section;
}

const Section& partition_section() {
  static const Section section =
      Table<Partition>("partition", "parameter space partitioning: lockstep tune --partition")
          .add("starts", &Partition::starts, "points", at_least_two, "Sobol points from which regions are looked for")
          .add("chains", &Partition::chains, "chains", at_least_one, "random walks inside each region")
          .add("points", &Partition::points, "points", Check{.low = 100}, "by which the volumes are measured")
          .add("confidence", &Partition::confidence, "", below_one, "of the intervals of all volumes together")
          .done();
  return section;
}

void check_bounds(const base::Json& at, const Dimension& dimension, Problems& problems) {
  const auto& bounds = dimension.log.empty() ? dimension.range : dimension.log;
  const std::string key = text("space.", dimension.key);
  if (!dimension.choice.empty() || (bounds.empty() && dimension.log.empty() && dimension.range.empty())) {
    for (size_t i = 0; i < dimension.choice.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (dimension.choice[i] == dimension.choice[j]) {
          problems.add(at, key, text(dimension.choice[i].dump(-1), " stands there twice"), "name each choice once");
        }
      }
    }
    return;
  }
  if (bounds.size() != 2) {
    problems.add(at, key, text("two numbers are expected, these are ", bounds.size()), "[lowest, highest]");
  } else if (!(bounds[0] < bounds[1])) {
    problems.add(at, key, text("an empty range: ", bounds[0], " to ", bounds[1]), "[lowest, highest]");
  } else if (!dimension.log.empty() && bounds[0] <= 0) {
    problems.add(at, key, text(bounds[0], " has no logarithm"), "begin above 0, or use range");
  } else if (!dimension.log.empty() && dimension.step > 0) {
    problems.add(at, key, "step is for range", "leave it out; whole numbers: \"integer\": true");
  } else if (dimension.step > bounds[1] - bounds[0]) {
    problems.add(at, key, text("a step of ", dimension.step, " leads out of the range at once"), "a smaller step");
  }
}

// A condition looks at a key that stands before it, so that values can be drawn in order.
void check_conditions(const base::Json& at, const Study& study, size_t index, Problems& problems) {
  const Dimension& dimension = study.space[index];
  for (const auto& [key, value] : dimension.when) {
    const std::string& wanted = value;  // a lambda may take this one
    std::vector<std::string> before;
    const Dimension* found = nullptr;
    for (size_t i = 0; i < index; ++i) {
      before.push_back(study.space[i].key);
      if (study.space[i].key == key) found = &study.space[i];
    }
    if (!found) {
      problems.add(at, text("space.", dimension.key, ".when"), text("'", key, "' is no key of the space before it"),
                   before.empty() ? "put that key first" : base::did_you_mean(key, before));
      continue;
    }
    const bool known = std::any_of(found->choice.begin(), found->choice.end(), [&](const base::Json& choice) {
      return (choice.is_string() ? choice.as_string() : choice.dump(-1)) == wanted;
    });
    if (!known) {
      problems.add(at, text("space.", dimension.key, ".when"), text("'", key, "' has no choice '", value, "'"),
                   found->choice.empty() ? "a condition is on a choice" : "one of its choices");
    }
  }
}

}  // namespace

const Section& study_section() {
  static const Section section =
      Table<Study>("study", "which job is tuned, over which of its keys, how, and for how much")
          .add("name", &Study::name, "", anything, "of the study in its journal")
          .add("job", &Study::job, "", anything, "a job document, relative to this one; empty: a program behind --")
          .by_name("space", &Study::space, &Dimension::key, dimension_section())
          .add("sampler", &Study::sampler, "", anything, "how values are chosen")
          .add("scheduler", &Study::scheduler, "", anything, "which trials are stopped early")
          .add("objective", &Study::objective, "", anything,
               "headline: that of the task; or a figure of the validation: loss, top1, ...")
          .add("direction", &Study::direction, "", anything, "headline: as the task says; of a program minimize")
          .add("trials", &Study::trials, "trials", at_least_one, "all sessions together")
          .add("startup", &Study::startup, "trials", non_negative, "by chance, before sampler and scheduler judge")
          .add("seed", &Study::seed, "", non_negative, "of the sampler")
          .add("ranks", &Study::ranks, "ranks", at_least_one, "of a trial")
          .add("retries", &Study::retries, "", non_negative, "a trial that crashed is tried again so often")
          .add("time_limit", &Study::time_limit, Type::duration, non_negative,
               "of one run of a program; none: no limit")
          .nest("budget", &Study::budget, budget_section())
          .nest("asha", &Study::asha, asha_section())
          .nest("partition", &Study::partition, partition_section())
          .done();
  return section;
}

Study parse_study(const base::Json& document, const std::vector<std::string>& sets) {
  base::Json copy = document;
  apply_sets(study_section(), copy, sets);
  Study study;
  Problems problems;
  read_document(study_section(), &study, copy, problems);
  if (problems.empty() && study.space.empty()) {
    problems.add(copy, "space", "there is nothing to tune",
                 "\"space\": {\"training.optimizer.lr\": {\"log\": [1e-4, 0.1]}}");
  }
  for (size_t i = 0; problems.empty() && i < study.space.size(); ++i) {
    const base::Json* place = copy.at("space").find(study.space[i].key);
    check_bounds(place ? *place : copy, study.space[i], problems);
    check_conditions(place ? *place : copy, study, i, problems);
  }
  if (problems.empty() && study.name.empty()) problems.add(copy, "name", "must not be empty", "\"name\": \"lr\"");
  if (problems.empty() && study.budget.money > 0 && study.budget.price <= 0) {
    problems.add(copy, "budget.price", "a budget of money, and no price of a node-hour", "\"price\": 1.20");
  }
  problems.throw_if_any();
  return study;
}

Study load_study(const base::Path& path, const std::vector<std::string>& sets) {
  Study study = parse_study(base::read_json(path), sets);
  if (!study.job.empty()) study.job = (path.parent_path() / study.job).lexically_normal().string();
  return study;
}

base::Json to_json(const Study& study) {
  return write_document(study_section(), &study, Which::all);
}

}  // namespace lockstep::spec
