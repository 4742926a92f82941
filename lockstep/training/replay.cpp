// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/replay.h"

#include <ATen/ops/scalar_tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/training/sync_check.h"

namespace lockstep::training {

using base::text;

namespace {

std::vector<model::Named> copies_of(const std::vector<model::Named>& tensors) {
  std::vector<model::Named> copies;
  copies.reserve(tensors.size());
  for (const auto& entry : tensors) copies.push_back({entry.name, entry.tensor.detach().clone()});
  return copies;
}

void put_back(const std::vector<model::Named>& copies, const std::vector<model::Named>& into) {
  for (size_t i = 0; i < copies.size(); ++i) into[i].tensor.detach().copy_(copies[i].tensor);
}

void check_same(bool same, comm::Group& group, int64_t step) {
  std::vector<std::string> others;
  const auto answers = group.all_gather(at::scalar_tensor(same ? 1 : 0, at::kLong));
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].item<int64_t>() == 0) others.push_back(text(rank));
  }
  if (others.empty()) return;
  throw base::Error(base::Blame::machine,
                    text("step ", step, ", computed twice from the same state, gave other bits on rank ",
                         base::join(others, ", "), " (training.replay_every)"),
                    "leave that node out and tell its administrators: processor, memory or GPU computes wrongly; the "
                    "last checkpoint is good");
}

}  // namespace

step::StepResult run_step(TrainingContext& context, step::Step& step, const step::Samples& samples, double lr,
                          bool want_stop) {
  const int64_t every = context.job.training.replay_every;
  const int64_t number = context.state.step + 1;
  if (every == 0 || number % every != 0) return step.run(samples, lr, want_stop);
  step.assemble();
  std::vector<model::Named> live = model::all_tensors(context.network);
  if (context.ema) live.insert(live.end(), context.ema->averages().begin(), context.ema->averages().end());
  const auto before = copies_of(live);
  const auto state_before = copies_of(step.state());
  step.run(samples, lr, want_stop);
  step.assemble();
  const at::Tensor first = fingerprints(live), first_state = fingerprints(step.state());
  put_back(before, live);
  step.load_state(state_before);
  const step::StepResult result = step.run(samples, lr, want_stop);
  step.assemble();
  check_same(fingerprints(live).equal(first) && fingerprints(step.state()).equal(first_state), context.group, number);
  return result;
}

}  // namespace lockstep::training
