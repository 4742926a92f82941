// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/evaluation_part.h"

#include <gtest/gtest.h>

namespace lockstep::planning {
namespace {

using forecast::Event;
using forecast::EventKind;
using forecast::Operator;
using forecast::Phase;
using forecast::Recording;

// Two steps of `batch` samples, behind the first an evaluation of `evaluated`; 0: none.
Recording steps(int64_t batch, int64_t evaluated) {
  Recording made;
  made.micro_batch = batch;
  made.steps = 2;
  const auto call = [](Phase phase, int64_t samples) {
    return Operator{.name = "aten::mm", .phase = phase, .flops = 100.0 * static_cast<double>(samples)};
  };
  int64_t id = 0;
  int64_t next_call = 0;
  int64_t evaluating = -1;
  const auto birth = [&](int64_t bytes) {
    made.events.push_back({.kind = EventKind::birth, .id = id++, .bytes = bytes});
  };
  const auto death = [&](int64_t which) { made.events.push_back({.kind = EventKind::death, .id = which}); };
  birth(1000);  // weights
  for (int64_t step = 0; step < 2; ++step) {
    made.events.push_back({.kind = EventKind::step_begin, .id = step});
    birth(10 * batch);
    if (step == 0) made.operators.push_back(call(Phase::forward, batch)), next_call = 1;
    made.events.push_back({.kind = EventKind::run, .id = 0});
    death(id - 1);
    if (step == 0 && evaluated > 0) {
      birth(7 * evaluated);
      made.operators.push_back(call(Phase::evaluate, evaluated));
      evaluating = next_call++;
      made.events.push_back({.kind = EventKind::run, .id = evaluating});
      death(id - 1);
    }
    if (step == 1) {
      birth(5);
      made.operators.push_back(call(Phase::update, 1));
      made.events.push_back({.kind = EventKind::run, .id = next_call++});
    }
    made.events.push_back({.kind = EventKind::step_end, .id = step});
  }
  return made;
}

TEST(EvaluationPartTest, LeavesItOut) {
  EXPECT_EQ(without_evaluation(steps(8, 8)), steps(8, 0));
  EXPECT_EQ(without_evaluation(steps(8, 3)), steps(8, 0));
}

TEST(EvaluationPartTest, TakesAnothers) {
  EXPECT_EQ(with_evaluation_of(steps(8, 8), steps(3, 3)), steps(8, 3));
  EXPECT_EQ(with_evaluation_of(steps(8, 8), steps(8, 8)), steps(8, 8));
}

}  // namespace
}  // namespace lockstep::planning
