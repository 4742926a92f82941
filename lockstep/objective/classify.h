// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "lockstep/objective/objective.h"
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
std::optional<Mix> draw_mix(const spec::Training& training, const BatchPosition& position, const at::Tensor& targets,
                            const spec::ImageSize& image_size);

// The mixed images [rows, channels, height, width]; a new tensor.
at::Tensor mix_images(const at::Tensor& images, const Mix& mix);

// training.class_weights by label; empty: every class weighs the same. User error for a name that is no class.
std::vector<double> label_weights(const spec::Training& training, const std::vector<std::string>& classes);

struct LossOptions {
  double label_smoothing = 0;
  double focal_gamma = 0;  // Lin et al. 2017, arXiv 1708.02002: each -log p of the sum weighs (1 - p) to this power
  double auxiliary_weight = 0.3;
  at::Tensor class_weights = {};  // float [classes], on the device of the logits; undefined: all alike
};

// targets: int64 [rows]; a row with target -1 has no part. Returns the SUM over the rows (a scalar that carries the
// gradient): the step divides by the samples of the whole batch, so that summing over ranks is all that is left to do.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const std::vector<at::Tensor>& auxiliary,
                             const at::Tensor& targets, const std::optional<Mix>& mix, const LossOptions& options);

// Rows whose largest logit is their target: a scalar on their device.
at::Tensor count_correct(const at::Tensor& logits, const at::Tensor& targets);

// One of several classes, of an image (task classify) or a sentence (task text). Fields "label" (-1: no part) and, for
// mixing, "image"; output "output", and those of auxiliary heads.
class Classify final : public Objective {
 public:
  explicit Classify(spec::Training training, const std::vector<double>& label_weights = {}, int64_t num_classes = 0);

  model::NamedTensors prepare(model::NamedTensors fields, const BatchPosition& position) const override;
  bool same_for_all_batches() const override { return training_.mixup <= 0 && training_.cutmix <= 0; }
  at::Tensor loss(const model::NamedTensors& outputs, const model::NamedTensors& fields,
                  const BatchPosition& position) const override;
  std::optional<double> uninformed_loss() const override;
  model::NamedTensors average(const std::vector<model::NamedTensors>& views) const override;
  std::vector<std::string> figures() const override { return {"accuracy"}; }
  std::string figure_text(const std::string& name, double value) const override;
  std::vector<at::Tensor> sums(const model::NamedTensors& outputs, const model::NamedTensors& fields) const override;
  HostRows scored(const model::NamedTensors& outputs) const override;
  HostRows predicted(const model::NamedTensors& outputs) const override;

 private:
  spec::Training training_;
  at::Tensor label_weights_;  // float [classes], in main memory; undefined: all alike
  int64_t num_classes_;       // 0: not known, or the loss is the sum of several heads'
};

}  // namespace lockstep::objective
