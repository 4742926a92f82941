// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/run_rules.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/text.h"
#include "lockstep/loader/loader_needs.h"
#include "lockstep/loader/stage.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/run/feeding.h"
#include "lockstep/run/order.h"
#include "lockstep/run/threads.h"
#include "lockstep/spec/rank_rules.h"

namespace lockstep::forecast {
namespace {

using base::Blame;
using base::Error;

constexpr int64_t kPhotograph = 30'000'000;  // a decoded one of ordinary size, and its copies
constexpr int64_t kSmallImage = 1'000'000;   // likewise, of the smallest: tables and rows
// Of a file of its own: JPEG keeps 24 bits in two or so, and the decoded image has a copy.
constexpr int64_t kDecodedTimes = 24;
constexpr int64_t kLooked = 1000;  // files of a folder that tell how large its images are

// Of an image of that folder while it is decoded, from the sizes of its first files.
int64_t decoded_bytes(const std::string& folder) {
  uintmax_t largest = 0;
  int64_t looked = 0;
  std::error_code trouble;
  for (std::filesystem::recursive_directory_iterator entry(folder, trouble), end; entry != end && looked < kLooked;
       entry.increment(trouble)) {
    if (trouble) break;
    if (!entry->is_regular_file(trouble)) continue;
    largest = std::max(largest, entry->file_size(trouble));
    ++looked;
  }
  if (looked == 0) return kPhotograph;
  return std::clamp(kDecodedTimes * static_cast<int64_t>(largest), kSmallImage, kPhotograph);
}

int64_t local_ranks(const MachineOption& machine_option) {
  return machine_option.gpu ? machine_option.gpus / machine_option.nodes() : 1;
}

loader::LoaderSettings loader_settings_at(const spec::Job& job, const MachineOption& machine_option) {
  return {.ranks = machine_option.ranks(),
          .local_ranks = local_ranks(machine_option),
          .threads = run::compute_threads(job.training, cores_of(machine_option), local_ranks(machine_option)),
          .gpu = machine_option.gpu.has_value(),
          .validates = !job.data.validate.empty()};
}

// Of the rank with the largest share.
loader::LoaderOptions with_most_rows(loader::LoaderOptions options) {
  const auto rows = [&](int64_t rank) {
    return run::rank_range({0, options.global_batch}, rank, options.num_ranks, options.num_slices).size();
  };
  for (int64_t rank = 0; rank < options.num_ranks; ++rank) {
    if (rows(rank) > rows(options.rank)) options.rank = rank;
  }
  return options;
}

}  // namespace

RunRules::Side RunRules::side_of(const std::string& folder, int64_t samples, const task::Task& task) {
  Side side;
  side.samples = samples;
  if (folder == "synthetic") {
    side.collection = std::make_unique<loader::Collection>(loader::Collection{.root = folder, .synthetic = true});
  } else if (loader::is_shard_folder(folder)) {
    side.collection = std::make_unique<loader::Collection>(loader::scan_images(folder, task.main_member()));
    side.store = loader::open_store(*side.collection, task.members());
  } else if (std::filesystem::is_directory(folder)) {
    side.collection = std::make_unique<loader::Collection>(loader::Collection{.root = folder});
    side.decoded = decoded_bytes(folder);
  }
  return side;
}

RunRules::RunRules(spec::Job job, int64_t samples, int64_t validation_samples, NetworkSays network)
    : job_(std::move(job)),
      train_(side_of(job_.data.train, samples, *task::make_task(job_))),
      validate_(side_of(job_.data.validate, validation_samples, *task::make_task(job_))),
      network_(std::move(network)) {}

loader::MemoryNeeds RunRules::needs_of(const Side& side, const loader::LoaderOptions& options) {
  // Not known: more than a batch.
  const int64_t samples = side.samples > 0 ? side.samples : options.global_batch;
  const bool here = side.collection != nullptr;
  return loader::loader_needs(
      with_most_rows(options), samples, side.store.get(),
      here ? loader::loader_extents(*side.collection, options, side.store.get()) : loader::Extents());
}

int64_t RunRules::bytes_of(const Side& side, const loader::LoaderOptions& options) {
  const loader::MemoryNeeds needs = needs_of(side, options);
  const bool synthetic = side.collection && side.collection->is_synthetic();
  return loader::loader_bytes(needs, loader::share_memory(needs), side.store != nullptr,
                              synthetic          ? 0
                              : side.decoded > 0 ? side.decoded
                                                 : kPhotograph);
}

// The run copies what half of the free memory holds, a collection at a time; what else fills the node is not known yet.
int64_t RunRules::staged_bytes(const MachineOption& machine_option) const {
  if (job_.data.stage != "ram") return 0;
  int64_t staged = 0;
  for (const Side* side : {&train_, &validate_}) {
    if (!side->store) continue;
    const int64_t bytes = loader::shard_bytes(*side->collection);
    const int64_t half = machine_option.machine.memory_per_node / 2;
    if (half == 0 || bytes <= half) staged += bytes;
  }
  return staged;
}

// The least data.memory with which both loaders start, in whole MiB.
int64_t RunRules::least_data_memory(const spec::Job& job, const MachineOption& machine_option) const {
  const loader::LoaderSettings settings = loader_settings_at(job, machine_option);
  int64_t least = loader::least_memory(needs_of(train_, loader::training_loader(job, settings)));
  if (settings.validates)
    least = std::max(least, loader::least_memory(needs_of(validate_, loader::validation_loader(job, settings))));
  return least;
}

// In the order of the run. Both loaders of a validation live together; those of features are alone.
void RunRules::fill(const spec::Job& job, const MachineOption& machine_option, RunRequirements& requirements) {
  const loader::LoaderSettings settings = loader_settings_at(job, machine_option);
  if (train_.collection) loader::settle_order(*train_.collection, job.data.order);
  spec::check_batch_on_ranks(job.training, settings.ranks);
  network_.check_norms(job, train_.samples > 0 ? train_.samples : job.training.global_batch, settings.ranks);
  for (const run::FeatureNeeds& needs : network_.features) {
    requirements.feature_bytes = std::max(requirements.feature_bytes, needs.bytes());
    const int64_t memory = machine_option.machine.memory_per_node;
    if (memory > 0) run::check_feature_memory(needs, settings.local_ranks, memory);
  }
  if (!network_.features.empty()) requirements.loader_bytes = bytes_of(train_, loader::feature_loader(job, settings));
  const int64_t validating = settings.validates ? bytes_of(validate_, loader::validation_loader(job, settings)) : 0;
  if (network_.features.size() == std::max<size_t>(1, job.training.phases.size())) return;
  const loader::LoaderOptions training = loader::training_loader(job, settings);
  requirements.loader_bytes = std::max(requirements.loader_bytes, bytes_of(train_, training) + validating);
  if (run::is_fed(job.data.pixels, settings.gpu)) {
    requirements.pinned_bytes = run::kFeederSlots * needs_of(train_, training).batch;
  }
}

int64_t RunRules::evaluation_rows(const MachineOption& machine_option, const Levers& levers) const {
  if (job_.data.validate.empty() && validate_.samples == 0) return 0;
  const int64_t rows = run::evaluation_rows(with_levers(job_, levers), machine_option.ranks(), machine_option.gpus > 0);
  return validate_.samples > 0 ? std::min(validate_.samples, rows) : rows;
}

RunRequirements RunRules::requirements(const MachineOption& machine_option, const Levers& levers) {
  const std::string key = base::text(levers.micro_batch, "/", machine_option.ranks(), "/", machine_option.nodes(), "/",
                                     machine_option.gpu.has_value(), "/", cores_of(machine_option), "/",
                                     machine_option.machine.memory_per_node, "/", levers.data_memory);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const spec::Job job = with_levers(job_, levers);
  RunRequirements requirements;
  requirements.staged_bytes = staged_bytes(machine_option);
  const int64_t batch = run::evaluation_rows(job, machine_option.ranks(), machine_option.gpu.has_value());
  requirements.busiest_rows = run::busiest_rows(validate_.samples, batch, machine_option.ranks());
  try {
    fill(job, machine_option, requirements);
  } catch (const Error& error) {
    if (error.blame() != Blame::user) throw;
    requirements.refusal = error;
    const int64_t least = least_data_memory(job, machine_option);
    if (least > job.data.memory) requirements.data_memory = least;
  }
  return known_[key] = requirements;
}

}  // namespace lockstep::forecast
