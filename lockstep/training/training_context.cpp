// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/training_context.h"

#include <ATen/Parallel.h>

#include "lockstep/base/clock.h"
#include "lockstep/loader/loader_needs.h"
#include "lockstep/loader/patient_loader.h"
#include "lockstep/run/threads.h"
#include "lockstep/site/memory.h"
#include "lockstep/site/nvml.h"
#include "lockstep/spec/rank_rules.h"
#include "lockstep/step/phase_norms.h"
#include "lockstep/training/agreed_threads.h"
#include "lockstep/training/agreement.h"
#include "lockstep/training/features.h"

namespace lockstep::training {

namespace {

std::unique_ptr<run::RunFolder> hold(const TrainOptions& options, const comm::Group& group) {
  return group.rank() == 0 ? std::make_unique<run::RunFolder>(options.run, options.logger.say) : nullptr;
}

// Whoever is asked to stop does not wait for a file system that does not answer: GaveUp.
loader::Collections look_at_data(const spec::Job& job, const Stop& stop, loader::Fingerprints& fingerprints) {
  struct Found {
    loader::Collections collections;
    loader::Fingerprints fingerprints;
  };
  const auto found = std::make_shared<Found>();
  const auto look = [found, job] {
    found->collections = loader::open_collections(job);
    found->fingerprints = loader::compute_fingerprints(found->collections);
  };
  std::vector<std::string> folders{job.data.train};
  if (!job.data.validate.empty()) folders.push_back(job.data.validate);
  loader::do_patiently(
      look, [&] { return stop.is_overdue_at_start(base::steady_seconds()); }, folders);
  fingerprints = std::move(found->fingerprints);
  return std::move(found->collections);
}

// The job resolved, before anything is made of it; the same on every rank. An order left to the storage may come out
// differently where nodes see the data through different file systems: then that of rank 0 counts.
spec::Job agreed_job(const spec::Job& job, const loader::Collections& collections,
                     const loader::Fingerprints& fingerprints, const TrainOptions& options, comm::Group& group) {
  spec::Job resolved = loader::resolve(job, collections);
  spec::Job compared = resolved;
  compared.data.order = job.data.order;
  check_terms(terms_of(compared, collections, fingerprints, options), node_of(options), group);
  return resolved;
}

int64_t num_samples(const loader::Collections& collections) {
  const auto validate = collections.validate ? collections.validate->samples.size() : 0;
  return static_cast<int64_t>(collections.train.samples.size() + validate);
}

void check_features(const TrainingContext& context) {
  const auto usable = static_cast<int64_t>(site::read_memory().usable());
  const int64_t samples = num_samples(context.collections);
  for (const run::FeatureNeeds& needs : feature_needs(context.job, context.network, context.options.device, samples)) {
    run::check_feature_memory(needs, comm::locality().size, usable);
  }
}

}  // namespace

TrainingContext::TrainingContext(const spec::Job& given, const TrainOptions& how, comm::Group& ranks)
    : options(how),
      stop(options, ranks),
      group(ranks),
      folder(hold(options, group)),
      collections(look_at_data(given, stop, fingerprints)),
      keeps_order(given.data.order == spec::SampleOrder::by_storage),
      job(agreed_job(given, collections, fingerprints, options, group)),
      timetable(job.training, static_cast<int64_t>(collections.train.samples.size())),
      task(task::make_task(job, collections.train.classes)),
      objective(objective::make_objective(job, collections.train.classes)),
      network(model::make_network(job, options.device)),
      state{.seconds = {.started = stop.started()}, .spikes = SpikeDetector(job.training.spike_factor)} {
  spec::check_batch_on_ranks(job.training, group.size());
  const int64_t mine = options.threads.threads > 0 ? options.threads.threads : run::compute_threads(job.training);
  use_threads(*this, agree_on_threads(mine, group));
  step::check_norms_of_phases(job, network, options.device, static_cast<int64_t>(collections.train.samples.size()),
                              group.size());
  check_features(*this);
  // Made first when the first epoch is over, which is late to hear of it.
  if (collections.validate)
    loader::check_loader_memory(*collections.validate, loader::validation_loader(job, loader_settings()));
  if (options.history) history = std::make_unique<SampleHistory>(options.run, group.rank(), group.size());
  if (!folder) return;
  ledger = std::make_unique<Ledger>(folder->paths(), timetable, objective, options.logger);
  std::shared_ptr<const site::PowerMeter> meter;
  if (options.device.is_cuda()) meter = std::make_shared<site::PowerMeter>(options.device.index());
  auto drawn = meter ? meter->joules() : std::nullopt;
  ledger->measure_with([meter, drawn, device = options.device](base::Json& fields) mutable {
    fields["memory"] = peak_memory(device);
    if (!meter) return;
    if (const auto watts = meter->watts()) fields["watts"] = *watts;
    const auto now = meter->joules();
    if (now && drawn) fields["joules"] = *now - *drawn;
    drawn = now;
  });
}

void use_threads(TrainingContext& context, int64_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  context.state.threads = threads;
  context.state.ranks = context.group.size();
}

run::LoaderState TrainingContext::data_state() const {
  return timetable.loader_state(state.step + state.data_shift);
}

bool TrainingContext::is_done() const {
  const int64_t patience = job.training.early_stop.patience;
  return state.step == timetable.total_steps() || (patience > 0 && state.patience.without >= patience);
}

loader::LoaderSettings TrainingContext::loader_settings() const {
  return {.rank = group.rank(),
          .ranks = group.size(),
          .local_ranks = comm::locality().size,
          .threads = run::compute_threads(job.training),
          .gpu = options.device.is_cuda(),
          .validates = collections.validate.has_value(),
          .task = task};
}

}  // namespace lockstep::training
