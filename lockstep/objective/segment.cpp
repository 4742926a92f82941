// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/segment.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/objective/classify.h"
#include "lockstep/task/segment.h"
#include "lockstep/task/segment_encoder.h"

namespace lockstep::objective {
namespace {

using model::NamedTensors;

constexpr double kDiceSmoothing = 1;

class Segment final : public Objective {
 public:
  Segment(const spec::Job& job, const std::vector<std::string>& classes)
      : dice_(job.segment.dice), num_classes_(job.model.classes) {
    const auto weights = label_weights(job.training, task::segment_names(job.segment, classes));
    if (!weights.empty()) weights_ = at::tensor(weights, at::kFloat);
  }

  std::vector<std::string> outputs() const override { return {"logit_map"}; }

  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& fields, const BatchPosition&) const override {
    const Pixels pixels = pixels_of(outputs, fields);
    const int64_t rows = pixels.labels.size(0), size = pixels.labels.size(1);
    const std::optional<at::Tensor> weights =
        weights_.defined() ? std::optional(weights_.to(pixels.labels.device(), /*non_blocking=*/true)) : std::nullopt;
    const at::Tensor each = at::cross_entropy_loss(pixels.logits.reshape({rows * size, pixels.logits.size(2)}),
                                                   pixels.labels.view({rows * size}), weights, at::Reduction::None,
                                                   /*ignore_index=*/task::kNoClass);
    const at::Tensor sum = (each.view({rows, size}).sum(1) / pixels.num_labelled()).sum();
    return dice_ > 0 ? sum + dice_loss(pixels) * dice_ : sum;
  }

  std::vector<std::string> figures() const override { return {"pixel_accuracy"}; }
  std::string figure_text(const std::string& /*name*/, double value) const override {
    return base::text("pixel accuracy ", base::percent(value));
  }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& fields) const override {
    Pixels pixels = pixels_of(outputs, fields);
    pixels.logits = pixels.logits.detach();
    const at::Tensor right = pixels.logits.argmax(2).eq(pixels.labels).to(at::kFloat).sum(1);
    return {(right / pixels.num_labelled()).sum()};
  }
  std::optional<double> uninformed_loss() const override {
    if (num_classes_ <= 1 || dice_ > 0 || weights_.defined()) return std::nullopt;
    return std::log(static_cast<double>(num_classes_));
  }
  HostRows scored(const NamedTensors& outputs) const override {
    return {{"log_probabilities", host_rows(at::log_softmax(outputs.at("logit_map").to(at::kFloat), 1).flatten(1))}};
  }

 private:
  struct Pixels {
    at::Tensor logits;  // float [rows, pixels, classes]
    at::Tensor labels;  // int64 [rows, pixels]

    at::Tensor labelled() const { return labels.ne(task::kNoClass).to(at::kFloat); }
    at::Tensor num_labelled() const { return labelled().sum(1).clamp_min(1); }  // [rows]; 1 where there is none
  };

  static Pixels pixels_of(const NamedTensors& outputs, const NamedTensors& fields) {
    const at::Tensor map = outputs.at("logit_map").to(at::kFloat).permute({0, 2, 3, 1});  // as it lies, channels last
    return {map.reshape({map.size(0), map.size(1) * map.size(2), map.size(3)}),
            fields.at("labels").to(at::kLong).flatten(1)};
  }

  // Of each row 1 - the mean over the classes of (2 sum(p g) + 1) / (sum p + sum g + 1), the pixels without a label
  // left out of every sum (Milletari et al. 2016 without the squares). A row without labels has none.
  static at::Tensor dice_loss(const Pixels& pixels) {
    const at::Tensor labelled = pixels.labelled();  // [rows, pixels]
    const at::Tensor labels = at::arange(pixels.logits.size(2), pixels.labels.options());
    const at::Tensor truth = pixels.labels.unsqueeze(2).eq(labels).to(at::kFloat);  // [rows, pixels, classes]
    const at::Tensor said = at::softmax(pixels.logits, 2) * labelled.unsqueeze(2);
    const at::Tensor both = (said * truth).sum(1), either = said.sum(1) + truth.sum(1);  // [rows, classes]
    const at::Tensor dice = (both * 2 + kDiceSmoothing) / (either + kDiceSmoothing);
    const at::Tensor has_labels = labelled.sum(1).clamp_max(1);
    return ((1 - dice.mean(1)) * has_labels).sum();
  }

  double dice_;
  int64_t num_classes_;
  at::Tensor weights_;
};

}  // namespace

std::shared_ptr<const Objective> make_segment(const spec::Job& job, const std::vector<std::string>& classes) {
  return std::make_shared<Segment>(job, classes);
}

}  // namespace lockstep::objective
