// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/classify.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::objective {
namespace {

constexpr const char* kPartner = "mixed with";  // the field that prepare() adds

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); shape below 1 by their boost.
double draw_gamma(base::Random& random, double shape) {
  if (shape < 1) return draw_gamma(random, shape + 1) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double draw_beta(base::Random& random, double alpha) {
  const double a = draw_gamma(random, alpha);
  const double b = draw_gamma(random, alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

// Each row with the next one that has a target, the last with the first; on their device, whatever is there.
at::Tensor partners(const at::Tensor& targets) {
  const at::Tensor rows = at::arange(targets.numel(), targets.options());
  const at::Tensor absent = targets.lt(0);
  // Those with a target first, both kinds in their order.
  const at::Tensor order = std::get<1>(at::sort(absent.to(at::kLong), /*stable=*/true, 0, /*descending=*/false));
  const at::Tensor num_there = targets.ge(0).sum();
  const at::Tensor next = at::where(rows + 1 < num_there, rows + 1, at::zeros_like(rows));
  const at::Tensor partner_of_order = at::where(rows < num_there, order.index_select(0, next), order);
  return at::empty_like(rows).scatter_(0, order, partner_of_order);
}

// Yun et al., "CutMix" (2019): the box has the share 1 - lambda of the area before it is cut off at the border.
void draw_box(Mix& mix, base::Random& random, const spec::ImageSize& size) {
  const auto part = [&](int64_t side) {
    return static_cast<int64_t>(static_cast<double>(side) * std::sqrt(1 - mix.lambda));
  };
  const int64_t height = part(size.height), width = part(size.width);
  const int64_t y = random.below(size.height);
  const int64_t x = random.below(size.width);
  mix.top = std::max<int64_t>(0, y - height / 2);
  mix.left = std::max<int64_t>(0, x - width / 2);
  mix.height = std::min(size.height, y + height / 2) - mix.top;
  mix.width = std::min(size.width, x + width / 2) - mix.left;
  mix.lambda = 1 - static_cast<double>(mix.height * mix.width) / static_cast<double>(size.pixels());
}

// As at::cross_entropy_loss with the same smoothing, weights and targets, but for the factor of each term.
at::Tensor focal_loss_sum(const at::Tensor& scores, const at::Tensor& targets, const std::optional<at::Tensor>& weights,
                          const LossOptions& options) {
  constexpr double kLeast = 1e-7;  // at 0 a power under 1 has no finite gradient
  const at::Tensor log = at::log_softmax(scores, 1);
  const at::Tensor terms = log * log.exp().neg().add(1 + kLeast).pow(options.focal_gamma);  // [rows, classes]
  at::Tensor sharp = at::nll_loss(terms, targets, weights, at::Reduction::Sum, /*ignore_index=*/-1);
  if (options.label_smoothing == 0) return sharp;
  const at::Tensor rows = (weights ? terms * *weights : terms).mean(1);
  const at::Tensor spread = -at::where(targets.ge(0), rows, at::zeros_like(rows)).sum();
  return sharp * (1 - options.label_smoothing) + spread * options.label_smoothing;
}

at::Tensor one_head(const at::Tensor& logits, const at::Tensor& targets, const std::optional<Mix>& mix,
                    const LossOptions& options) {
  const at::Tensor scores = logits.to(at::kFloat);
  const std::optional<at::Tensor> weights =
      options.class_weights.defined() ? std::optional(options.class_weights) : std::nullopt;
  const auto sum = [&](const at::Tensor& wanted) {
    if (options.focal_gamma > 0) return focal_loss_sum(scores, wanted, weights, options);
    return at::cross_entropy_loss(scores, wanted, weights, at::Reduction::Sum, /*ignore_index=*/-1,
                                  options.label_smoothing);
  };
  if (!mix) return sum(targets);
  return sum(targets) * mix->lambda + sum(targets.index_select(0, mix->partner)) * (1 - mix->lambda);
}

// All of a mix but the partners.
std::optional<Mix> draw_numbers(const spec::Training& training, const BatchPosition& position,
                                const spec::ImageSize& image_size) {
  if (training.mixup <= 0 && training.cutmix <= 0) return std::nullopt;
  base::Random random(base::derive_seed(static_cast<uint64_t>(training.seed), "mix"),
                      static_cast<uint32_t>(position.epoch), static_cast<uint64_t>(position.step));
  const bool box = training.cutmix > 0 && (training.mixup <= 0 || random.chance(0.5));
  Mix mix;
  mix.lambda = draw_beta(random, box ? training.cutmix : training.mixup);
  if (box) draw_box(mix, random, image_size);
  return mix;
}

}  // namespace

std::optional<Mix> draw_mix(const spec::Training& training, const BatchPosition& position, const at::Tensor& targets,
                            const spec::ImageSize& image_size) {
  auto mix = draw_numbers(training, position, image_size);
  if (mix) mix->partner = partners(targets);
  return mix;
}

at::Tensor mix_images(const at::Tensor& images, const Mix& mix) {
  const at::Tensor other = images.index_select(0, mix.partner);
  if (mix.height == 0 && mix.width == 0 && mix.top == 0 && mix.left == 0) {
    return images * mix.lambda + other * (1 - mix.lambda);
  }
  at::Tensor mixed = images.clone();
  const auto box = [&](const at::Tensor& of) {
    return of.narrow(2, mix.top, mix.height).narrow(3, mix.left, mix.width);  // [rows, 3, height, width]
  };
  box(mixed).copy_(box(other));
  return mixed;
}

at::Tensor cross_entropy_sum(const at::Tensor& logits, const std::vector<at::Tensor>& auxiliary,
                             const at::Tensor& targets, const std::optional<Mix>& mix, const LossOptions& options) {
  at::Tensor loss = one_head(logits, targets, mix, options);
  for (const auto& head : auxiliary) {
    loss = loss + one_head(head, targets, mix, options) * options.auxiliary_weight;
  }
  return loss;
}

at::Tensor count_correct(const at::Tensor& logits, const at::Tensor& targets) {
  return logits.detach().argmax(1).eq(targets).sum();
}

std::vector<double> label_weights(const spec::Training& training, const std::vector<std::string>& classes) {
  if (training.class_weights.empty() || classes.empty()) return {};
  std::vector<double> weights(classes.size(), 1);
  for (const auto& [name, weight] : training.class_weights) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw base::Error(base::Blame::user, base::text("training.class_weights: there is no class '", name, "'"),
                        base::did_you_mean(name, classes));
    }
    weights[static_cast<size_t>(found - classes.begin())] = weight;
  }
  return weights;
}

Classify::Classify(spec::Training training, const std::vector<double>& label_weights, int64_t num_classes)
    : training_(std::move(training)), num_classes_(num_classes) {
  if (!label_weights.empty()) label_weights_ = at::tensor(label_weights, at::kFloat);
}

// Whatever the smoothing and mixing: every target is a distribution over the classes.
std::optional<double> Classify::uninformed_loss() const {
  if (num_classes_ <= 1) return std::nullopt;
  const auto classes = static_cast<double>(num_classes_);
  return std::log(classes) * std::pow(1 - 1 / classes, training_.focal_gamma);
}

// Of probabilities, and back to what a softmax makes them of.
model::NamedTensors Classify::average(const std::vector<model::NamedTensors>& views) const {
  model::NamedTensors mean = views.front();
  for (auto& [name, output] : mean) {
    std::vector<at::Tensor> logs;
    logs.reserve(views.size());
    for (const auto& view : views) logs.push_back(at::log_softmax(view.at(name).to(at::kFloat), 1));
    const at::Tensor all = at::stack(logs);      // [views, batch, classes]
    const at::Tensor most = at::amax(all, {0});  // at::logsumexp in its parts, which a simulated device knows
    output = (all - most).exp().sum(0).log() + most - std::log(static_cast<double>(views.size()));
  }
  return mean;
}

model::NamedTensors Classify::prepare(model::NamedTensors fields, const BatchPosition& position) const {
  if (same_for_all_batches()) return fields;  // task text has no images
  const at::Tensor images = fields.at("image");
  const auto mix = draw_mix(training_, position, fields.at("label"), {images.size(2), images.size(3)});
  if (!mix) return fields;
  fields.set("image", mix_images(images, *mix));
  fields.set(kPartner, mix->partner);
  return fields;
}

at::Tensor Classify::loss(const model::NamedTensors& outputs, const model::NamedTensors& fields,
                          const BatchPosition& position) const {
  std::vector<at::Tensor> auxiliary;
  for (const auto& [name, output] : outputs) {
    if (name != "output") auxiliary.push_back(output);
  }
  std::optional<Mix> mix;
  if (const at::Tensor* partner = fields.find(kPartner)) {
    const at::Tensor& images = fields.at("image");
    mix = draw_numbers(training_, position, {images.size(2), images.size(3)});
    mix->partner = *partner;
  }
  return cross_entropy_sum(
      outputs.at("output"), auxiliary, fields.at("label"), mix,
      {.label_smoothing = training_.label_smoothing,
       .focal_gamma = training_.focal_gamma,
       .auxiliary_weight = training_.auxiliary_weight,
       .class_weights = label_weights_.defined() ? label_weights_.to(fields.at("label").device(), /*non_blocking=*/true)
                                                 : at::Tensor()});
}

std::string Classify::figure_text(const std::string& name, double value) const {
  return base::text(name, " ", base::percent(value));
}

std::vector<at::Tensor> Classify::sums(const model::NamedTensors& outputs, const model::NamedTensors& fields) const {
  return {count_correct(outputs.at("output"), fields.at("label"))};
}

HostRows Classify::scored(const model::NamedTensors& outputs) const {
  return {{"logits", host_rows(outputs.at("output"))}};
}

HostRows Classify::predicted(const model::NamedTensors& outputs) const {
  return {{"probabilities", at::softmax(host_rows(outputs.at("output")), 1).contiguous()}};
}

}  // namespace lockstep::objective
