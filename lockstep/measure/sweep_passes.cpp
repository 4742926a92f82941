// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/text.h"
#include "lockstep/measure/sweep.h"

namespace lockstep::measure {
namespace {

using base::text;
using forecast::NumberType;

// The types without tf32, which only products know.
std::vector<NumberType> plain_types(const SweepRange& range) {
  std::vector<NumberType> types;
  for (const auto type : range.types) {
    if (type != NumberType::tf32) types.push_back(type);
  }
  return types;
}

double size_of(NumberType type) {
  return type == NumberType::fp32 ? 4 : 2;
}

struct Images {
  int64_t channels, side;
};
constexpr Images kImages[] = {{64, 112}, {64, 56},   {256, 56}, {128, 28}, {512, 28},
                              {256, 14}, {1024, 14}, {512, 7},  {2048, 7}, {32, 112}};

// Adds `make` for images of every size, batch and type.
template <class Make>
void add_for_images(std::vector<SweepCase>& cases, const SweepRange& range, const char* label, double passes,
                    const Make& make) {
  for (const auto type : plain_types(range)) {
    for (const auto& [channels, side] : kImages) {
      for (const int64_t batch : range.batches) {
        const std::vector<int64_t> sizes{batch, channels, side, side};
        const double bytes = passes * size_of(type) * static_cast<double>(batch * channels * side * side);
        cases.push_back(
            {label, type, false, 0, bytes, [=, options = options_of(range, type)] { return make(sizes, options); }});
      }
    }
  }
}

void add_norms(std::vector<SweepCase>& cases, const SweepRange& range) {
  add_for_images(cases, range, "batch norm", 6,
                 [](const std::vector<int64_t>& sizes, const at::TensorOptions& options) {
                   const auto wide = options.dtype(at::kFloat);  // weights and statistics are fp32, as in the step
                   const at::Tensor x = image_noise(sizes, options, false).requires_grad_();
                   const at::Tensor g = image_noise(sizes, options, false);
                   const at::Tensor weight = noise({sizes[1]}, wide).requires_grad_();
                   const at::Tensor bias = noise({sizes[1]}, wide).requires_grad_();
                   const at::Tensor mean = at::zeros({sizes[1]}, wide);
                   const at::Tensor variance = noise({sizes[1]}, wide).abs_();
                   return std::function<void()>([=] {
                     for (const auto& leaf : {x, weight, bias}) leaf.mutable_grad().reset();
                     at::batch_norm(x, weight, bias, mean, variance, true, 0.1, 1e-5, true).backward(g);
                   });
                 });
  for (const auto type : plain_types(range)) {
    const auto options = options_of(range, type);
    for (const int64_t width : {192, 384, 768, 1024, 1408}) {
      for (const int64_t batch : range.batches) {
        const double bytes = 6 * size_of(type) * static_cast<double>(batch * 197 * width);
        cases.push_back({"layer norm", type, false, 0, bytes, [=] {
                           const at::Tensor x = noise({batch, 197, width}, options).requires_grad_();
                           const at::Tensor g = noise({batch, 197, width}, options);
                           const at::Tensor weight = noise({width}, options).requires_grad_();
                           const at::Tensor bias = noise({width}, options).requires_grad_();
                           return [=] {
                             for (const auto& leaf : {x, weight, bias}) leaf.mutable_grad().reset();
                             at::layer_norm(x, {width}, weight, bias, 1e-6).backward(g);
                           };
                         }});
      }
    }
  }
}

// Elementwise operators, copies and whole reductions over so many elements.
std::vector<std::function<void()>> flat_works(int64_t count, const at::TensorOptions& options) {
  const bool wide = options.dtype() == at::kFloat;
  const at::Tensor a = noise({count}, options);
  const at::Tensor b = noise({count}, options);
  const auto other = options.dtype(wide ? at::kBFloat16 : at::kFloat).dtype();
  return {
      [=] {
        at::relu(a);
        at::threshold_backward(b, a, 0);
      },
      [=] {
        a.mul_(1.0001);
        at::add(a, b);
        at::mul(a, b);
      },
      [=] {
        at::gelu(a);
        at::gelu_backward(b, a);
      },
      [=] {
        a.to(other);
        a.clone();
        b.zero_();
      },
      [=] { at::sum(a); },
      [=] { at::native_dropout(a, 0.1, true); },
  };
}

void add_flat(std::vector<SweepCase>& cases, const SweepRange& range) {
  constexpr size_t kWorks = 6;
  for (const auto type : plain_types(range)) {
    const auto options = options_of(range, type);
    for (const int64_t count : {1'000, 30'000, 300'000, 1'000'000, 3'000'000, 10'000'000, 40'000'000, 200'000'000}) {
      const double bytes = 4 * size_of(type) * static_cast<double>(count);
      for (size_t i = 0; i < kWorks; ++i) {
        cases.push_back(
            {text("elementwise ", count), type, false, 0, bytes, [=] { return flat_works(count, options)[i]; }});
      }
    }
  }
}

void add_pooling(std::vector<SweepCase>& cases, const SweepRange& range) {
  const auto pool = [&](const char* label, auto apply) {
    add_for_images(cases, range, label, 4, [=](const std::vector<int64_t>& sizes, const at::TensorOptions& options) {
      const at::Tensor x = image_noise(sizes, options, false).requires_grad_();
      return std::function<void()>([=] {
        x.mutable_grad().reset();
        const at::Tensor y = apply(x);
        y.backward(y.detach());
      });
    });
  };
  pool("max pool", [](const at::Tensor& x) { return at::max_pool2d(x, 3, 2, 1); });
  pool("average pool", [](const at::Tensor& x) { return at::avg_pool2d(x, 2, 2); });
  pool("global pool", [](const at::Tensor& x) { return at::adaptive_avg_pool2d(x, {1, 1}); });
  add_for_images(cases, range, "concatenate", 4,
                 [](const std::vector<int64_t>& sizes, const at::TensorOptions& options) {
                   const at::Tensor x = image_noise(sizes, options, false);
                   const at::Tensor few = image_noise({sizes[0], 32, sizes[2], sizes[3]}, options, false);
                   return std::function<void()>([=] { at::cat({x, few}, 1); });
                 });
  add_for_images(cases, range, "add images", 6,
                 [](const std::vector<int64_t>& sizes, const at::TensorOptions& options) {
                   const at::Tensor x = image_noise(sizes, options, false);
                   const at::Tensor y = image_noise(sizes, options, false);
                   return std::function<void()>([=] {
                     x.add_(y);
                     x.relu_();
                     x.clamp_(0, 6);
                     x.contiguous();
                   });
                 });
}

void add_tails(std::vector<SweepCase>& cases, const SweepRange& range) {
  for (const auto type : plain_types(range)) {
    const auto options = options_of(range, type);
    for (const int64_t batch : range.batches) {
      cases.push_back({"loss", type, false, 0, 0, [=] {
                         const at::Tensor logits = noise({batch, 1000}, options.dtype(at::kFloat)).requires_grad_();
                         const at::Tensor targets = at::arange(batch, options.dtype(at::kLong));
                         return [=] {
                           logits.mutable_grad().reset();
                           at::cross_entropy_loss(logits, targets).backward();
                         };
                       }});
      const double scores = static_cast<double>(batch * 12 * 197 * 197);
      cases.push_back({"softmax", type, false, 0, 4 * size_of(type) * scores, [=] {
                         const at::Tensor x = noise({batch, 12, 197, 197}, options).requires_grad_();
                         return [=] {
                           x.mutable_grad().reset();
                           const at::Tensor y = at::softmax(x, -1);
                           y.backward(y.detach());
                         };
                       }});
      for (const int64_t width : {768, 3072}) {  // a bias's gradient; heads put side by side
        const double bytes = 4 * size_of(type) * static_cast<double>(batch * 197 * width);
        cases.push_back({"columns", type, false, 0, bytes, [=] {
                           const at::Tensor x = noise({batch * 197, width}, options);
                           const at::Tensor heads = x.view({batch, 197, 12, width / 12}).transpose(1, 2);
                           return [=] {
                             at::sum(x, at::IntArrayRef{0});
                             heads.contiguous();
                           };
                         }});
      }
    }
  }
}

// Parameters as a network has them: a few large tensors and many small ones.
std::vector<at::Tensor> parameter_noise(int64_t total, const at::TensorOptions& options) {
  std::vector<at::Tensor> all;
  const int64_t each = std::max<int64_t>(1, total / 50);
  for (int64_t i = 0; i < 50; ++i) {
    all.push_back(noise({each}, options).abs_());
    all.push_back(noise({256}, options).abs_());
  }
  return all;
}

}  // namespace

void add_passes(std::vector<SweepCase>& cases, const SweepRange& range) {
  add_norms(cases, range);
  add_flat(cases, range);
  add_pooling(cases, range);
  add_tails(cases, range);
}

void add_updates(std::vector<SweepCase>& cases, const SweepRange& range) {
  const auto options = options_of(range, NumberType::fp32);
  for (const int64_t total : {1'000'000, 5'000'000, 25'000'000, 90'000'000, 300'000'000}) {
    const double bytes = 16.0 * static_cast<double>(total);
    cases.push_back({text("sgd ", total), NumberType::fp32, false, 0, bytes, [=] {
                       const auto p = parameter_noise(total, options);
                       return [p, g = parameter_noise(total, options), m = parameter_noise(total, options)]() mutable {
                         at::_fused_sgd_(p, g, m, 1e-4, 0.9, 1e-4, 0, false, false, false);
                         at::_foreach_norm(g);
                       };
                     }});
    cases.push_back({text("adamw ", total), NumberType::fp32, false, 0, bytes, [=] {
                       const auto p = parameter_noise(total, options);
                       std::vector<at::Tensor> steps;
                       for (size_t i = 0; i < p.size(); ++i) steps.push_back(at::zeros({}, options).add_(1));
                       return [p, steps, g = parameter_noise(total, options), m = parameter_noise(total, options),
                               v = parameter_noise(total, options)]() mutable {
                         at::_fused_adamw_(p, g, m, v, {}, steps, 1e-4, 0.9, 0.999, 1e-4, 1e-8, false, false);
                       };
                     }});
  }
}

}  // namespace lockstep::measure
