// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_check.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/step/batch_statistics.h"

namespace lockstep::step {
namespace {

using base::text;

// The statistics that are not finite after one image went through; empty when a single row is enough for all.
std::string norm_without_variance(const model::Network& network, const StepOptions& options,
                                  const spec::ImageSize& size) {
  const c10::AutoGradMode no_gradients(false);
  BatchStatistics statistics(network, options.norms_from(network));
  if (statistics.empty()) return "";
  statistics.keep();
  const at::Tensor image = at::zeros({1, 3, size.height, size.width}, at::TensorOptions(options.device));
  size_t end = network.blocks().size();  // behind the last block that has statistics: others need not run
  while (end > options.train_from && network.blocks()[end - 1]->buffers.empty()) --end;
  const model::Bundle values = network.run({image}, model::Mode::evaluate, 0, options.train_from);
  network.run(values, model::Mode::train, options.train_from, end);
  std::string found;
  for (size_t i = options.train_from; i < network.blocks().size(); ++i) {
    for (const auto& buffer : network.blocks()[i]->buffers) {
      if (found.empty() && !at::isfinite(buffer.tensor).all().item<bool>()) found = buffer.name;
    }
  }
  statistics.restore();
  return found;
}

int64_t smallest_batch(const spec::Training& training, int64_t num_samples) {
  const int64_t last = num_samples % training.global_batch;  // 0: all batches are full
  return last > 0 ? last : training.global_batch;
}

std::string fix_for(int64_t batch) {
  std::string another = "choose a training.global_batch that leaves more samples for the last batch";
  if (batch < 4) return another;
  return text("--set training.virtual_ranks=", std::bit_floor(static_cast<uint64_t>(batch / 2)), " or fewer, or ",
              another);
}

// Rows of the smallest pass that any rank makes of a batch; a rank without rows makes none.
int64_t smallest_pass(int64_t batch, int64_t ranks, int64_t micro) {
  int64_t smallest = batch;
  for (const int64_t share : {batch / ranks, (batch + ranks - 1) / ranks}) {
    if (share == 0) continue;
    smallest = std::min(smallest, micro > 0 && share % micro > 0 ? share % micro : micro > 0 ? micro : share);
  }
  return smallest;
}

bool has_slices_of_one(const spec::Training& training, int64_t num_samples) {
  return training.virtual_ranks > 0 && smallest_batch(training, num_samples) / training.virtual_ranks < 2;
}

// The batch, a full one or the last of an epoch, that leaves some rank a pass of one sample to norm by itself; 0: none.
int64_t batch_with_a_pass_of_one(const spec::Training& training, int64_t num_samples, int64_t ranks) {
  const bool is_local = training.batch_norm == spec::BatchNorm::local || ranks == 1;
  if (training.virtual_ranks > 0 || !is_local) return 0;
  for (const int64_t batch : {training.global_batch, num_samples % training.global_batch}) {
    if (batch == 0 || batch > num_samples || smallest_pass(batch, ranks, training.micro_batch) > 1) continue;
    return batch;
  }
  return 0;
}

}  // namespace

bool has_passes_of_one(const spec::Training& training, int64_t num_samples, int64_t ranks) {
  return has_slices_of_one(training, num_samples) || batch_with_a_pass_of_one(training, num_samples, ranks) > 0;
}

void check_slices(const model::Network& network, const StepOptions& options, int64_t num_samples,
                  const spec::ImageSize& image_size) {
  const auto& training = options.training;
  if (!has_slices_of_one(training, num_samples)) return;
  const int64_t smallest = smallest_batch(training, num_samples);
  const std::string norm = norm_without_variance(network, options, image_size);
  if (norm.empty()) return;
  throw base::Error(base::Blame::user,
                    text("training.virtual_ranks: ", training.virtual_ranks, " slices of a batch of ", smallest,
                         " samples leave one sample to some, and batch norm (", norm,
                         ") would see one value a channel at ", to_text(image_size), " pixels"),
                    fix_for(smallest));
}

void check_shares(const model::Network& network, const StepOptions& options, int64_t num_samples,
                  const spec::ImageSize& image_size, int64_t ranks) {
  const int64_t batch = batch_with_a_pass_of_one(options.training, num_samples, ranks);
  if (batch == 0) return;
  const std::string norm = norm_without_variance(network, options, image_size);
  if (norm.empty()) return;
  throw base::Error(base::Blame::user,
                    text("a batch of ", batch, batch == 1 ? " sample" : " samples", " on ", ranks,
                         ranks == 1 ? " rank" : " ranks", " leaves a pass of one sample, and batch norm (", norm,
                         ") would see one value a channel at ", to_text(image_size), " pixels"),
                    "choose a training.global_batch (and micro_batch) that leaves two samples at least to every pass, "
                    "the last of an epoch too; or fewer ranks, or training.batch_norm=sync");
}

}  // namespace lockstep::step
