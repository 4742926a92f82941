// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader_rules.h"

#include "lockstep/run/evaluation.h"

namespace lockstep::loader {
namespace {

LoaderOptions loader_of(const spec::Job& job, const LoaderSeat& seat, Use use) {
  const bool train = use == Use::train;
  LoaderOptions options;
  options.data = job.data;
  options.task = task::make_task(job);
  options.use = use;
  options.global_batch = train ? job.training.global_batch : run::evaluation_rows(job, seat.ranks, seat.card);
  options.seed = job.training.seed;
  options.threads = job.data.threads > 0 ? job.data.threads : seat.threads;
  options.augment = train;
  // On a card the only thread that matters is the one that launches: each rank of the node keeps a core for it.
  if (seat.card) options.free_cores = seat.local_ranks;
  if (seat.validates) options.memory_share = train ? 0.75 : 0.25;  // both live while a validation runs
  return options;
}

}  // namespace

LoaderOptions training_loader(const spec::Job& job, const LoaderSeat& seat) {
  LoaderOptions options = loader_of(job, seat, Use::train);
  options.rank = seat.rank;
  options.num_ranks = seat.ranks;
  options.num_slices = job.training.virtual_ranks;
  return options;
}

LoaderOptions feature_loader(const spec::Job& job, const LoaderSeat& seat) {
  LoaderOptions options = loader_of(job, seat, Use::evaluate);
  options.global_batch *= seat.ranks;
  options.rank = seat.rank;
  options.num_ranks = seat.ranks;
  return options;
}

LoaderOptions validation_loader(const spec::Job& job, const LoaderSeat& seat) {
  return loader_of(job, seat, Use::evaluate);
}

}  // namespace lockstep::loader
