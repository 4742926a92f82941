// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <array>

#include "lockstep/base/text.h"
#include "lockstep/measure/sweep.h"

namespace lockstep::measure {
namespace {

using base::text;
using forecast::NumberType;

double flops_of(std::initializer_list<int64_t> factors) {
  double all = 2;
  for (const int64_t factor : factors) all *= static_cast<double>(factor);
  return all;
}

struct Product {
  int64_t m, n, k;
};

std::vector<Product> products() {
  std::vector<Product> all;
  for (int64_t side = 64; side <= 8192; side *= 2) all.push_back({side, side, side});
  for (const int64_t tokens : {197, 1576, 6304, 25216}) {  // of 1, 8, 32, 128 images
    for (const int64_t width : {192, 384, 768, 1024, 1408}) {
      all.push_back({tokens, 3 * width, width});  // query, key, value
      all.push_back({tokens, width, width});
      all.push_back({tokens, 4 * width, width});
      all.push_back({tokens, width, 4 * width});
      all.push_back({width, 4 * width, tokens});  // a weight's gradient
    }
  }
  for (const int64_t batch : {8, 32, 128, 256}) {
    for (const int64_t width : {512, 1024, 2048}) all.push_back({batch, 1000, width});  // classifiers
  }
  all.push_back({128, 4096, 25088});
  return all;
}

void add_matmuls(std::vector<SweepCase>& cases, const SweepRange& range) {
  for (const auto type : range.types) {
    const auto options = options_of(range, type);
    for (const auto& [m, n, k] : products()) {
      const double bytes = 4.0 * static_cast<double>(m * n + n * k + m * k);
      // The second matrix is a weight of [n, k], as a linear layer has it.
      cases.push_back(
          {text("matmul ", m, "x", n, "x", k), type, false, flops_of({m, n, k}), bytes, [options, m = m, n = n, k = k] {
             return [a = noise({m, k}, options), b = noise({n, k}, options), c = noise({n}, options)] {
               at::addmm(c, a, b.t());
             };
           }});
      cases.push_back({text("matmul ", m, "x", n, "x", k, " plain"), type, false, flops_of({m, n, k}), bytes,
                       [options, m = m, n = n, k = k] {
                         return [a = noise({m, k}, options), b = noise({k, n}, options)] { at::mm(a, b); };
                       }});
    }
    for (const auto& [b, m, n, k] : std::initializer_list<std::array<int64_t, 4>>{
             {96, 197, 197, 64}, {384, 197, 197, 64}, {384, 197, 64, 197}, {96, 50, 50, 64}, {16, 1024, 1024, 64}}) {
      cases.push_back({"matmul batched", type, false, flops_of({b, m, n, k}),
                       4.0 * static_cast<double>(b * (m * n + n * k + m * k)), [options, b = b, m = m, n = n, k = k] {
                         return [x = noise({b, m, k}, options), y = noise({b, k, n}, options)] { at::bmm(x, y); };
                       }});
    }
  }
}

void add_attention(std::vector<SweepCase>& cases, const SweepRange& range) {
  struct Heads {
    int64_t heads, tokens, dim;
  };
  constexpr Heads kHeads[] = {{3, 197, 64}, {6, 197, 64},  {12, 197, 64},  {16, 197, 64}, {16, 257, 88},
                              {12, 50, 64}, {12, 577, 64}, {16, 1024, 64}, {8, 512, 128}};
  for (const auto type : range.types) {
    if (type == NumberType::tf32) continue;
    const auto options = options_of(range, type);
    for (const auto& [heads, tokens, dim] : kHeads) {
      for (const int64_t batch : range.batches) {
        const double bytes = 30.0 * static_cast<double>(batch * heads * tokens * dim);
        cases.push_back({"attention", type, false, 2 * flops_of({batch, heads, tokens, tokens, dim}), bytes,
                         [options, batch, heads = heads, tokens = tokens, dim = dim] {
                           const auto make = [&] {  // as a ViT's block has it: [batch, tokens, heads, dim] in memory
                             return noise({batch, tokens, heads, dim}, options).transpose(1, 2).requires_grad_();
                           };
                           return [q = make(), k = make(), v = make(),
                                   g = noise({batch, tokens, heads, dim}, options).transpose(1, 2)] {
                             for (const auto& leaf : {q, k, v}) leaf.mutable_grad().reset();
                             at::scaled_dot_product_attention(q, k, v).backward(g);
                           };
                         }});
      }
    }
  }
}

struct Convolution {
  int64_t in, out, kernel, stride, groups, side;
};

// ResNets, DenseNet, GoogLeNet, EfficientNet-Lite, VGG, ResNeXt, patches of ViTs.
constexpr Convolution kConvolutions[] = {
    {3, 64, 7, 2, 1, 224},     {64, 64, 1, 1, 1, 56},       {64, 64, 3, 1, 1, 56},     {64, 256, 1, 1, 1, 56},
    {256, 64, 1, 1, 1, 56},    {256, 128, 1, 1, 1, 56},     {128, 128, 3, 2, 1, 56},   {128, 512, 1, 1, 1, 28},
    {256, 512, 1, 2, 1, 56},   {512, 128, 1, 1, 1, 28},     {128, 128, 3, 1, 1, 28},   {512, 256, 1, 1, 1, 28},
    {256, 256, 3, 2, 1, 28},   {256, 1024, 1, 1, 1, 14},    {512, 1024, 1, 2, 1, 28},  {1024, 256, 1, 1, 1, 14},
    {256, 256, 3, 1, 1, 14},   {1024, 512, 1, 1, 1, 14},    {512, 512, 3, 2, 1, 14},   {512, 2048, 1, 1, 1, 7},
    {1024, 2048, 1, 2, 1, 14}, {2048, 512, 1, 1, 1, 7},     {512, 512, 3, 1, 1, 7},    {64, 128, 3, 2, 1, 56},
    {64, 128, 1, 2, 1, 56},    {128, 256, 3, 2, 1, 28},     {256, 512, 3, 2, 1, 14},   {96, 128, 1, 1, 1, 56},
    {192, 128, 1, 1, 1, 56},   {128, 32, 3, 1, 1, 56},      {320, 128, 1, 1, 1, 28},   {128, 32, 3, 1, 1, 28},
    {128, 32, 3, 1, 1, 14},    {800, 128, 1, 1, 1, 14},     {128, 32, 3, 1, 1, 7},     {864, 128, 1, 1, 1, 7},
    {64, 192, 3, 1, 1, 56},    {192, 96, 1, 1, 1, 28},      {96, 128, 3, 1, 1, 28},    {16, 32, 3, 1, 1, 28},
    {480, 192, 1, 1, 1, 14},   {112, 224, 3, 1, 1, 14},     {32, 128, 3, 1, 1, 14},    {832, 384, 1, 1, 1, 7},
    {192, 384, 3, 1, 1, 7},    {3, 32, 3, 2, 1, 224},       {32, 32, 3, 1, 32, 112},   {32, 16, 1, 1, 1, 112},
    {16, 96, 1, 1, 1, 112},    {96, 96, 3, 2, 96, 112},     {144, 144, 3, 1, 144, 56}, {144, 24, 1, 1, 1, 56},
    {144, 144, 5, 2, 144, 56}, {240, 240, 5, 1, 240, 28},   {480, 480, 3, 1, 480, 14}, {480, 80, 1, 1, 1, 14},
    {672, 672, 5, 1, 672, 14}, {1152, 1152, 5, 1, 1152, 7}, {1152, 192, 1, 1, 1, 7},   {320, 1280, 1, 1, 1, 7},
    {3, 64, 3, 1, 1, 224},     {64, 64, 3, 1, 1, 224},      {128, 128, 3, 1, 1, 112},  {256, 256, 3, 1, 1, 56},
    {512, 512, 3, 1, 1, 28},   {512, 512, 3, 1, 1, 14},     {128, 128, 3, 1, 32, 56},  {512, 512, 3, 1, 32, 14},
    {3, 192, 16, 16, 1, 224},  {3, 768, 16, 16, 1, 224},    {3, 1408, 14, 14, 1, 224}, {64, 64, 3, 1, 1, 112},
};

std::function<void()> convolution_work(const Convolution& c, int64_t batch, const at::TensorOptions& options,
                                       bool contiguous) {
  const int64_t padding = c.kernel >= 14 ? 0 : c.kernel / 2;
  const int64_t side = (c.side + 2 * padding - c.kernel) / c.stride + 1;
  const at::Tensor input = image_noise({batch, c.in, c.side, c.side}, options, contiguous);
  const at::Tensor weight = image_noise({c.out, c.in / c.groups, c.kernel, c.kernel}, options, contiguous);
  const at::Tensor gradient = image_noise({batch, c.out, side, side}, options, contiguous);
  return [=] {
    const std::vector<int64_t> stride{c.stride, c.stride};
    const std::vector<int64_t> pad{padding, padding};
    const std::vector<int64_t> one{1, 1};
    const std::vector<int64_t> none{0, 0};
    at::convolution(input, weight, {}, stride, pad, one, false, none, c.groups);
    // Each gradient by itself: together they cannot be told apart on every device.
    for (const bool of_input : {true, false}) {
      if (of_input && c.in == 3) continue;  // nobody asks for the image's
      at::convolution_backward(gradient, input, weight, c10::nullopt, stride, pad, one, false, none, c.groups,
                               {of_input, !of_input, false});
    }
  };
}

}  // namespace

void add_products(std::vector<SweepCase>& cases, const SweepRange& range) {
  add_matmuls(cases, range);
  add_attention(cases, range);
}

void add_convolutions(std::vector<SweepCase>& cases, const SweepRange& range) {
  for (const auto type : range.types) {
    const auto options = options_of(range, type);
    for (const auto& c : kConvolutions) {
      for (const int64_t batch : range.batches) {
        for (const bool contiguous : {false, true}) {
          if (contiguous && (batch != range.batches[1] || range.device.is_cpu())) continue;  // a second layout: once
          const int64_t side = c.side / c.stride;
          const double flops = flops_of({batch, c.out, side, side, c.in / c.groups, c.kernel, c.kernel});
          const double bytes = 8.0 * static_cast<double>(batch * (c.in * c.side * c.side + c.out * side * side));
          cases.push_back({text("convolution ", c.in, "->", c.out, " ", c.kernel, "x", c.kernel, " batch ", batch),
                           type, contiguous, flops, bytes,
                           [=] { return convolution_work(c, batch, options, contiguous); }});
        }
      }
    }
  }
}

}  // namespace lockstep::measure
