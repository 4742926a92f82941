// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "lockstep/spec/job.h"

namespace lockstep::objective {

// How one batch is mixed: row i becomes lambda * row i + (1 - lambda) * row partner[i] (mixup), or gets the box of its
// partner pasted in (cutmix), and its loss is mixed likewise.
struct Mix {
  double lambda = 1;
  at::Tensor partner;                                // int64 [rows]; rows without a target are their own partner
  int64_t top = 0, left = 0, height = 0, width = 0;  // the box of cutmix, in pixels; empty for mixup
};

// Whether and how the batch of (seed, epoch, step) is mixed. Kind, lambda and box are the same on every rank; partners
// stand in the rank's own share (each row with the next one that has a target), so that no pixel travels: with another
// number of ranks, other pairs are mixed.
std::optional<Mix> draw_mix(const spec::Training& training, int64_t epoch, int64_t step, const at::Tensor& targets,
                            int64_t image_size);

// The mixed images [rows, 3, size, size]; a new tensor.
at::Tensor mix_images(const at::Tensor& images, const Mix& mix);

struct LossOptions {
  double label_smoothing = 0;
  double auxiliary_weight = 0.3;
};

// targets: int64 [rows]; a row with target -1 has no part. Returns the SUM over the rows (a scalar that carries the
// gradient): the step divides by the samples of the whole batch, so that summing over ranks is all that is left to do.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const std::vector<at::Tensor>& auxiliary,
                             const at::Tensor& targets, const std::optional<Mix>& mix, const LossOptions& options);

// Rows whose largest logit is their target.
int64_t count_correct(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace lockstep::objective
