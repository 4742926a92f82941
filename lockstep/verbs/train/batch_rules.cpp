// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/batch_rules.h"

#include <algorithm>
#include <functional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/step/schedule.h"
#include "lockstep/step/virtual_check.h"

namespace lockstep::verbs {
namespace {

using base::Blame;
using base::Error;
using base::text;

// The sizes of a rank's slices that are smaller than ghost_batch, largest first: what is left of each micro-batch.
std::vector<int64_t> smaller_slices(const spec::Training& training, int64_t ranks) {
  const int64_t parts = std::max(ranks, training.virtual_ranks);
  std::set<int64_t, std::greater<>> sizes;
  for (const int64_t share : {training.global_batch / parts, (training.global_batch + parts - 1) / parts}) {
    const int64_t micro = training.micro_batch > 0 ? std::min(training.micro_batch, share) : share;
    if (micro < 1) continue;
    for (const int64_t rows : {micro, share % micro}) sizes.insert(rows % training.ghost_batch);
  }
  sizes.erase(0);
  return {sizes.begin(), sizes.end()};
}

std::string batch_norm_line(const spec::Training& training, int64_t ranks) {
  if (training.batch_norm == spec::BatchNorm::sync && ranks > 1) {
    const int64_t micro = training.micro_batch * ranks;
    const int64_t rows = micro > 0 ? std::min(micro, training.global_batch) : training.global_batch;
    return text("batch norm: statistics of ", rows, " samples, over ", ranks, " ranks (sync)");
  }
  if (training.batch_norm == spec::BatchNorm::ghost) {
    std::vector<std::string> smaller;
    for (const int64_t size : smaller_slices(training, ranks)) smaller.push_back(text(size));
    return text(
        "batch norm: statistics of ", training.ghost_batch, " samples (ghost)",
        smaller.empty() ? "" : text("; what is left of a rank's share makes slices of ", base::join(smaller, ", ")));
  }
  return "";
}

}  // namespace

void check_batch_on_ranks(const spec::Training& training, int64_t ranks) {
  if (ranks > training.global_batch) {
    throw Error(Blame::user,
                text(ranks, " ranks for a training.global_batch of ", training.global_batch, ": ",
                     ranks - training.global_batch, " of them would never have a sample"),
                text("start ", training.global_batch, " ranks at most, or --set training.global_batch=", ranks));
  }
  const int64_t share = training.global_batch / ranks;  // the smallest
  if (training.ghost_batch > share) {
    throw Error(Blame::user,
                text("training.ghost_batch is ", training.ghost_batch, ", but of a batch of ", training.global_batch,
                     " each of ", ranks, " ranks has ", share, " samples"),
                text("--set training.ghost_batch=", share, ", fewer ranks, or a larger training.global_batch"));
  }
  if (training.batch_norm != spec::BatchNorm::ghost) return;
  const auto smaller = smaller_slices(training, ranks);
  if (!smaller.empty() && smaller.back() == 1 && training.ghost_batch > 1) {
    throw Error(
        Blame::user,
        text("training.ghost_batch is ", training.ghost_batch, ", and of a batch of ", training.global_batch, " on ",
             ranks, ranks == 1 ? " rank" : " ranks", " a slice of one sample is left, which has no statistics"),
        "a training.ghost_batch that divides the share of every rank, or another number of ranks");
  }
}

void check_norms_of_phases(const spec::Job& job, const model::Network& network, at::Device device, int64_t num_samples,
                           int64_t ranks) {
  std::vector<spec::Phase> phases = job.training.phases;
  if (phases.empty()) phases.emplace_back();
  for (const spec::Phase& phase : phases) {
    step::StepOptions options;
    options.training = job.training;
    options.device = device;
    options.train_from = phase.train_from.empty() ? 0 : network.index_of(phase.train_from);
    options.freeze_norm = phase.freeze_norm;
    step::check_slices(network, options, num_samples, job.data.image_size);
    step::check_shares(network, options, num_samples, job.data.image_size, ranks);
  }
}

std::vector<std::string> batch_rule_lines(const spec::Training& training, int64_t ranks) {
  std::vector<std::string> lines;
  for (const std::string& line : {step::rate_rule_text(training), batch_norm_line(training, ranks)}) {
    if (!line.empty()) lines.push_back(line);
  }
  if (training.reduce_precision == spec::ReducePrecision::bf16 && ranks > 1) {
    lines.push_back(text("gradients: added up in bf16, off by at most ", ranks, " / 256 of their absolute sum"));
  }
  return lines;
}

}  // namespace lockstep::verbs
