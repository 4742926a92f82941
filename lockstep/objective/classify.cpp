// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/classify.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/random.h"

namespace lockstep::objective {
namespace {

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

at::Tensor partners(const at::Tensor& targets) {
  const at::Tensor host = targets.to(at::kCPU).contiguous();
  const int64_t* target = host.const_data_ptr<int64_t>();
  std::vector<int64_t> partner(static_cast<size_t>(host.numel()));
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < host.numel(); ++i) {
    partner[static_cast<size_t>(i)] = i;
    if (target[i] >= 0) rows.push_back(i);
  }
  for (size_t k = 0; k < rows.size(); ++k) partner[static_cast<size_t>(rows[k])] = rows[(k + 1) % rows.size()];
  return at::tensor(partner, at::kLong).to(targets.device());
}

// Yun et al., "CutMix" (2019): the box has the share 1 - lambda of the area before it is cut off at the border.
void draw_box(Mix& mix, base::Random& random, int64_t size) {
  const auto side = static_cast<int64_t>(static_cast<double>(size) * std::sqrt(1 - mix.lambda));
  const int64_t y = random.below(size);
  const int64_t x = random.below(size);
  mix.top = std::max<int64_t>(0, y - side / 2);
  mix.left = std::max<int64_t>(0, x - side / 2);
  mix.height = std::min(size, y + side / 2) - mix.top;
  mix.width = std::min(size, x + side / 2) - mix.left;
  mix.lambda = 1 - static_cast<double>(mix.height * mix.width) / static_cast<double>(size * size);
}

at::Tensor one_head(const at::Tensor& logits, const at::Tensor& targets, const std::optional<Mix>& mix,
                    double smoothing) {
  const at::Tensor scores = logits.to(at::kFloat);
  const auto sum = [&](const at::Tensor& wanted) {
    return at::cross_entropy_loss(scores, wanted, {}, at::Reduction::Sum, /*ignore_index=*/-1, smoothing);
  };
  if (!mix) return sum(targets);
  return sum(targets) * mix->lambda + sum(targets.index_select(0, mix->partner)) * (1 - mix->lambda);
}

}  // namespace

std::optional<Mix> draw_mix(const spec::Training& training, int64_t epoch, int64_t step, const at::Tensor& targets,
                            int64_t image_size) {
  if (training.mixup <= 0 && training.cutmix <= 0) return std::nullopt;
  base::Random random(base::derive_seed(static_cast<uint64_t>(training.seed), "mix"), static_cast<uint32_t>(epoch),
                      static_cast<uint64_t>(step));
  const bool box = training.cutmix > 0 && (training.mixup <= 0 || random.chance(0.5));
  Mix mix;
  mix.lambda = draw_beta(random, box ? training.cutmix : training.mixup);
  if (box) draw_box(mix, random, image_size);
  mix.partner = partners(targets);
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
  at::Tensor loss = one_head(logits, targets, mix, options.label_smoothing);
  for (const auto& head : auxiliary) {
    loss = loss + one_head(head, targets, mix, options.label_smoothing) * options.auxiliary_weight;
  }
  return loss;
}

int64_t count_correct(const at::Tensor& logits, const at::Tensor& targets) {
  return logits.detach().argmax(1).eq(targets).sum().item<int64_t>();
}

}  // namespace lockstep::objective
