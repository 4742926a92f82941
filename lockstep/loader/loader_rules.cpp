// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader_rules.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/site/storage.h"

namespace lockstep::loader {
namespace {

LoaderOptions loader_of(const spec::Job& job, const LoaderSettings& settings, Use use) {
  const bool train = use == Use::train;
  LoaderOptions options;
  options.data = job.data;
  options.task = settings.task ? settings.task : task::make_task(job);
  options.use = use;
  options.global_batch = train ? job.training.global_batch : run::evaluation_rows(job, settings.ranks, settings.gpu);
  options.seed = job.training.seed;
  options.threads = job.data.threads > 0 ? job.data.threads : settings.threads;
  options.augment = train;
  // On a GPU the only thread that matters is the one that launches: each rank of the node keeps a core for it.
  if (settings.gpu) options.free_cores = settings.local_ranks;
  if (settings.validates) options.memory_share = train ? 0.75 : 0.25;  // both live while a validation runs
  return options;
}

}  // namespace

LoaderOptions training_loader(const spec::Job& job, const LoaderSettings& settings) {
  LoaderOptions options = loader_of(job, settings, Use::train);
  options.rank = settings.rank;
  options.num_ranks = settings.ranks;
  options.num_slices = job.training.virtual_ranks;
  return options;
}

LoaderOptions feature_loader(const spec::Job& job, const LoaderSettings& settings) {
  LoaderOptions options = loader_of(job, settings, Use::evaluate);
  options.global_batch *= settings.ranks;
  options.rank = settings.rank;
  options.num_ranks = settings.ranks;
  return options;
}

LoaderOptions validation_loader(const spec::Job& job, const LoaderSettings& settings) {
  return loader_of(job, settings, Use::evaluate);
}

std::shared_ptr<const task::Task> task_of(const LoaderOptions& options) {
  if (options.task) return options.task;
  spec::Job job;
  job.data = options.data;
  return task::make_task(job);
}

spec::SampleOrder settle_order(const Collection& collection, spec::SampleOrder wish) {
  using spec::SampleOrder;
  if (wish == SampleOrder::windows && !collection.shards) {
    throw base::Error(base::Blame::user,
                      base::text("data.order is windows, but ", collection.root, " is no folder of shards"),
                      "lockstep prep makes shards of it; or data.order=full");
  }
  if (wish != SampleOrder::by_storage) return wish;
  const bool far = collection.shards && site::is_network(site::read_storage("data", collection.root).type);
  return far ? SampleOrder::windows : SampleOrder::full;
}

}  // namespace lockstep::loader
