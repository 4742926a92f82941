// SPDX-License-Identifier: Apache-2.0
// The operators that networks are made of, on a GPU: against libtorch's in fp64 on the CPU, gradients too.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/kernel/fused_batch_norm.h"
#include "lockstep/kernel/lstm_gates.h"
#include "lockstep/kernel/max_pool.h"
#include "lockstep/kernel/pixels.h"
#include "lockstep/kernel/tokens.h"
#include "lockstep/model/lstm_layer.h"

namespace lockstep::kernel {
namespace {

const at::Device kGpu(at::kCUDA, 0);
constexpr double kRounding = 6e-3;  // of bf16 results; of fp16 far less

// ||a - b|| / ||b||; what is no number fails.
double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor one = a.detach().to(at::kCPU).to(at::kDouble), other = b.detach().to(at::kDouble);
  EXPECT_EQ(one.sizes(), other.sizes());
  return ((one - other).norm() / (other.norm() + 1e-30)).item<double>();
}

#define EXPECT_CLOSE(a, b, tolerance) EXPECT_LT(distance(a, b), tolerance) << #a

at::Tensor image(at::IntArrayRef sizes, at::ScalarType type) {
  return (at::randn(sizes) * 2 + 3).to(type).contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor exact(const at::Tensor& tensor) {  // its leaf in fp64
  return tensor.detach().to(at::kCPU).to(at::kDouble).requires_grad_(true);
}

at::Tensor leaf(const at::Tensor& tensor) {
  return tensor.detach().to(kGpu).requires_grad_(true);
}

struct NormCase {
  std::vector<int64_t> sizes;
  bool added, relu;
};

void check_batch_norm(const NormCase& one, at::ScalarType type) {
  const int64_t channels = one.sizes[1];
  const at::Tensor x = image(one.sizes, type), more = image(one.sizes, type) - 3, push = image(one.sizes, type) - 3;
  const at::Tensor weight = at::rand({channels}) + 0.5, bias = at::randn({channels});
  FusedBatchNorm call{leaf(x),
                      one.added ? leaf(more) : at::Tensor(),
                      leaf(weight),
                      leaf(bias),
                      at::zeros({channels}).to(kGpu),
                      at::ones({channels}).to(kGpu),
                      0.1,
                      1e-5,
                      one.relu};
  ASSERT_TRUE(takes_fused_batch_norm(call.input));
  const at::Tensor output = fused_batch_norm(call);
  EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
  output.backward(push.to(kGpu));

  const at::Tensor x64 = exact(x), more64 = exact(more), weight64 = exact(weight), bias64 = exact(bias);
  const at::Tensor mean64 = at::zeros({channels}, at::kDouble), variance64 = at::ones({channels}, at::kDouble);
  at::Tensor wanted = at::batch_norm(x64, weight64, bias64, mean64, variance64, true, 0.1, 1e-5, false);
  if (one.added) wanted = wanted + more64;
  if (one.relu) wanted = wanted.relu();
  wanted.backward(push.to(at::kDouble));

  EXPECT_CLOSE(output, wanted, kRounding);
  EXPECT_CLOSE(call.running_mean, mean64, 1e-5);
  EXPECT_CLOSE(call.running_variance, variance64, 1e-5);
  EXPECT_CLOSE(call.input.grad(), x64.grad(), 2 * kRounding);
  EXPECT_CLOSE(call.weight.grad(), weight64.grad(), kRounding);
  EXPECT_CLOSE(call.bias.grad(), bias64.grad(), kRounding);
  if (one.added) {
    EXPECT_CLOSE(call.added.grad(), more64.grad(), kRounding);
  }
}

TEST(LayersOnGpuTest, BatchNorm) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const bool added : {false, true}) {
      for (const bool relu : {false, true}) {
        for (const std::vector<int64_t>& sizes :
             {std::vector<int64_t>{2, 8, 3, 5}, {4, 24, 7, 7}, {3, 208, 9, 4}, {8, 64, 56, 56}, {5, 2048, 7, 7}}) {
          SCOPED_TRACE(testing::Message() << sizes[1] << " channels, added " << added << ", relu " << relu);
          check_batch_norm({sizes, added, relu}, type);
        }
      }
    }
  }
}

TEST(LayersOnGpuTest, LinearAndGelu) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{2, 5, 16, 8}, {3, 197, 64, 256}, {4, 257, 96, 6144}}) {
      const at::Tensor x = at::randn({sizes[0], sizes[1], sizes[2]}).to(type);
      const at::Tensor w = (at::randn({sizes[3], sizes[2]}) * 0.3).to(type), b = at::randn({sizes[3]}).to(type);
      const at::Tensor push = at::randn({sizes[0], sizes[1], sizes[3]}).to(type);
      const at::Tensor a = leaf(x), weight = leaf(w), bias = leaf(b);
      ASSERT_TRUE(takes_linear(a, weight));
      const at::Tensor output = linear_gelu(a, weight, bias);
      output.backward(push.to(kGpu));
      const at::Tensor a64 = exact(x), weight64 = exact(w), bias64 = exact(b);
      const at::Tensor wanted = at::gelu(at::linear(a64, weight64, bias64));
      wanted.backward(push.to(at::kDouble));
      EXPECT_CLOSE(output, wanted, kRounding);
      EXPECT_CLOSE(a.grad(), a64.grad(), 2 * kRounding);
      EXPECT_CLOSE(weight.grad(), weight64.grad(), 2 * kRounding);
      EXPECT_CLOSE(bias.grad(), bias64.grad(), 2 * kRounding);
    }
  }
}

TEST(LayersOnGpuTest, BatchNormHasNoUseForDigitsOfALargeMean) {
  const at::Tensor x =
      (at::randn({8, 16, 14, 14}) * 0.5 + 300).to(at::kHalf).contiguous(at::MemoryFormat::ChannelsLast);
  const FusedBatchNorm call{x.to(kGpu),
                            {},
                            at::ones({16}).to(kGpu),
                            at::zeros({16}).to(kGpu),
                            at::zeros({16}).to(kGpu),
                            at::ones({16}).to(kGpu)};
  const at::Tensor wanted = at::batch_norm(x.to(at::kDouble), {}, {}, {}, {}, true, 0.1, 1e-5, false);
  EXPECT_CLOSE(fused_batch_norm(call), wanted, kRounding);
}

TEST(LayersOnGpuTest, BatchNormReadsTheGradientOfAPartOfTheChannelsWhereItLies) {
  const at::Tensor a = image({2, 16, 6, 6}, at::kBFloat16), b = image({2, 24, 6, 6}, at::kBFloat16);
  const auto norm = [](const at::Tensor& x) {
    const int64_t channels = x.size(1);
    return fused_batch_norm({x,
                             {},
                             at::ones({channels}).to(kGpu),
                             at::zeros({channels}).to(kGpu),
                             at::zeros({channels}).to(kGpu),
                             at::ones({channels}).to(kGpu),
                             0.1,
                             1e-5,
                             true});
  };
  const at::Tensor one = leaf(a), two = leaf(b), push = image({2, 40, 6, 6}, at::kBFloat16);
  at::cat({norm(one), norm(two)}, 1).backward(push.to(kGpu));
  const at::Tensor one64 = exact(a), two64 = exact(b);
  const auto plain = [](const at::Tensor& x) {
    return at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false).relu();
  };
  at::cat({plain(one64), plain(two64)}, 1).backward(push.to(at::kDouble));
  EXPECT_CLOSE(one.grad(), one64.grad(), 2 * kRounding);
  EXPECT_CLOSE(two.grad(), two64.grad(), 2 * kRounding);
}

TEST(LayersOnGpuTest, MaxPool) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const PoolWindow& window : {PoolWindow{3, 2, 1, false}, PoolWindow{3, 2, 0, true}, PoolWindow{3, 1, 1, true},
                                     PoolWindow{2, 2, 0, true}}) {
      for (const int64_t side : {7, 14, 57}) {
        const at::Tensor x = image({3, 24, side, side + 1}, type), on_gpu = leaf(x), on_cpu = exact(x);
        const at::Tensor output = max_pool(on_gpu, window);
        const at::Tensor wanted = at::max_pool2d(on_cpu, window.size, window.stride, window.padding, 1, window.ceil);
        EXPECT_TRUE(output.to(at::kCPU).to(at::kDouble).equal(wanted));
        const at::Tensor push = at::randn(wanted.sizes()).to(type);
        output.backward(push.to(kGpu));
        wanted.backward(push.to(at::kDouble));
        EXPECT_CLOSE(on_gpu.grad(), on_cpu.grad(), kRounding);
      }
    }
  }
}

void check_layer_norm(int64_t rows, int64_t width, bool with_branch, at::ScalarType type) {
  const at::Tensor x = at::randn({2, rows, width}).to(type), more = at::randn({2, rows, width}).to(type);
  const at::Tensor weight = at::rand({width}) + 0.5, bias = at::randn({width});
  const at::Tensor push = at::randn({2, rows, width}).to(type), pass = at::randn({2, rows, width}).to(type);
  const at::Tensor a = leaf(x), b = leaf(more), w = leaf(weight), c = leaf(bias);
  ASSERT_TRUE(takes_add_layer_norm(a));
  const SumAndNorm both = add_layer_norm(a, with_branch ? b : at::Tensor(), w, c, 1e-6);
  ((both.normalized * push.to(kGpu)).sum() + (both.sum * pass.to(kGpu)).sum()).backward();

  const at::Tensor a64 = exact(x), b64 = exact(more), w64 = exact(weight), c64 = exact(bias);
  const at::Tensor sum = with_branch ? a64 + b64 : a64 + 0;
  const at::Tensor wanted = at::layer_norm(sum, {width}, w64, c64, 1e-6);
  ((wanted * push.to(at::kDouble)).sum() + (sum * pass.to(at::kDouble)).sum()).backward();
  EXPECT_CLOSE(both.sum, sum, kRounding);
  EXPECT_CLOSE(both.normalized, wanted, kRounding);
  EXPECT_CLOSE(a.grad(), a64.grad(), kRounding);
  EXPECT_CLOSE(w.grad(), w64.grad(), kRounding);
  EXPECT_CLOSE(c.grad(), c64.grad(), kRounding);
  if (with_branch) {
    EXPECT_CLOSE(b.grad(), b64.grad(), kRounding);
  }
}

TEST(LayersOnGpuTest, LayerNorm) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const int64_t width : {8, 192, 768, 1408, 2048}) {
      for (const int64_t rows : {1, 7, 257, 3000}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << width);
        check_layer_norm(rows, width, true, type);
        check_layer_norm(rows, width, false, type);
      }
    }
  }
}

// Against the same operator in fp32 on the CPU, which lstm_gates_test.cpp holds against autograd.
TEST(LayersOnGpuTest, GatesOfAnLstm) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t channels : {1, 24, 64, 300}) {
      SCOPED_TRACE(testing::Message() << channels << " channels");
      const auto maps = [&](int64_t count, at::ScalarType of) {
        return at::randn({3, count, 17, 19}).to(of).contiguous(at::MemoryFormat::ChannelsLast);
      };
      const at::Tensor in = maps(4 * channels, type), state = maps(4 * channels, type),
                       cells = maps(channels, at::kFloat), holes = at::randn({3, channels}).to(type),
                       of_h = maps(channels, type), of_c = maps(channels, at::kFloat);
      const auto run = [&](const at::Device& device) {
        const auto on = [&](const at::Tensor& tensor) { return tensor.to(device); };
        const auto like = [&](int64_t count, at::ScalarType of) { return on(maps(count, of)); };
        const LstmResults results{like(channels, type), like(channels, at::kFloat), like(4 * channels, type)};
        lstm_gates({on(in), on(state), {}, on(cells), on(holes)}, results, true);
        const LstmGradientResults gradients{like(4 * channels, type), on(of_c).clone(), on(at::zeros({3, channels}))};
        lstm_gates_backward({on(of_h), results.gates, on(cells), results.cells, on(holes)}, gradients, true);
        return std::vector<at::Tensor>{results.hidden,    results.cells,      results.gates,
                                       gradients.of_sums, gradients.of_cells, gradients.of_peepholes};
      };
      const auto ours = run(kGpu), wanted = run(at::kCPU);
      for (size_t i = 0; i < ours.size(); ++i) EXPECT_CLOSE(ours[i], wanted[i], type == at::kFloat ? 1e-4 : kRounding);
    }
  }
}

// The whole layer against itself without our kernels, on the CPU; frames of one channel lie both ways.
TEST(LayersOnGpuTest, AnLstmLayer) {
  constexpr int64_t kSteps = 3, kRows = 2, kChannels = 8;
  at::globalContext().setAllowTF32CuDNN(false);
  for (const int64_t in : {1, 4}) {
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(testing::Message() << in << " channels in, recompute " << recompute);
      const at::Tensor frames = at::randn({kSteps * kRows, in, 9, 7}).contiguous(at::MemoryFormat::ChannelsLast),
                       of_input = at::randn({4 * kChannels, in, 3, 3}) * 0.2,
                       of_state = at::randn({4 * kChannels, kChannels, 3, 3}) * 0.2, bias = at::randn({4 * kChannels}),
                       holes = at::randn({3, kChannels}), push = at::randn({kSteps * kRows, kChannels, 9, 7});
      const auto run = [&](const at::Device& device) {
        const auto on = [&](const at::Tensor& tensor) { return tensor.detach().to(device).requires_grad_(true); };
        model::LstmLayer layer;
        layer.input = on(frames);
        layer.input_weight = on(of_input);
        layer.state_weight = on(of_state);
        layer.bias = on(bias);
        layer.peepholes = on(holes);
        layer.steps = kSteps;
        layer.recompute = recompute;
        layer.fused = true;
        const model::LstmStates states = model::run_lstm_layer(layer);
        states.hidden.backward(push.to(device));
        return std::vector<at::Tensor>{states.hidden,
                                       states.cells,
                                       layer.input.grad(),
                                       layer.input_weight.grad(),
                                       layer.state_weight.grad(),
                                       layer.bias.grad(),
                                       layer.peepholes.grad()};
      };
      const auto ours = run(kGpu), wanted = run(at::kCPU);
      for (size_t i = 0; i < ours.size(); ++i) EXPECT_CLOSE(ours[i], wanted[i], 1e-3);
    }
  }
}

TEST(LayersOnGpuTest, HeadsAreSplitAndJoined) {
  const at::Tensor x = at::randn({3, 17, 3 * 4 * 24}).to(at::kBFloat16), qkv = leaf(x);
  ASSERT_TRUE(takes_split_qkv(qkv, 4));
  const Heads heads = split_qkv(qkv, 4);
  const at::Tensor wanted = x.view({3, 17, 3, 4, 24}).permute({2, 0, 3, 1, 4});
  EXPECT_TRUE(heads.query.to(at::kCPU).equal(wanted[0]));
  EXPECT_TRUE(heads.value.to(at::kCPU).equal(wanted[2]));
  const at::Tensor a = at::randn({3, 4, 17, 24}).to(at::kBFloat16), b = at::randn({3, 4, 17, 24}).to(at::kBFloat16);
  const at::Tensor lying = b.transpose(1, 2).contiguous().transpose(1, 2);
  ((heads.query * a.to(kGpu)).sum() + (heads.key * lying.to(kGpu)).sum() + (heads.value * b.to(kGpu)).sum()).backward();
  const at::Tensor parts = qkv.grad().to(at::kCPU).view({3, 17, 3, 4, 24}).permute({2, 0, 3, 1, 4});
  EXPECT_TRUE(parts[0].equal(a));
  EXPECT_TRUE(parts[1].equal(b));
  EXPECT_TRUE(parts[2].equal(b));
}

TEST(LayersOnGpuTest, Linear) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const int64_t rows : {1, 100, 5000}) {
      const at::Tensor x = at::randn({2, rows, 72}).to(type), weight = at::randn({200, 72}).to(type);
      const at::Tensor bias = at::randn({200}).to(type), push = at::randn({2, rows, 200}).to(type);
      const at::Tensor a = leaf(x), w = leaf(weight), b = leaf(bias);
      ASSERT_TRUE(takes_linear(a, w));
      const at::Tensor output = linear(a, w, b);
      output.backward(push.to(kGpu));
      const at::Tensor a64 = exact(x), w64 = exact(weight), b64 = exact(bias);
      const at::Tensor wanted = at::linear(a64, w64, b64);
      wanted.backward(push.to(at::kDouble));
      EXPECT_CLOSE(output, wanted, kRounding);
      EXPECT_CLOSE(a.grad(), a64.grad(), kRounding);
      EXPECT_CLOSE(w.grad(), w64.grad(), kRounding);
      EXPECT_CLOSE(b.grad(), b64.grad(), kRounding);
    }
  }
}

TEST(LayersOnGpuTest, PixelsHaveTheBitsOfTheCpu) {
  for (const int64_t width : {1, 5, 224}) {
    const at::Tensor pixels = at::randint(256, {3, 7, width, 3}, at::kByte);
    ASSERT_TRUE(takes_normalise(pixels.to(kGpu)));
    const std::vector<double> factor{0.0171, 0.0175, 0.0174}, offset{-2.1179, -2.0357, -1.8044};
    EXPECT_TRUE(normalise(pixels.to(kGpu), factor, offset).to(at::kCPU).equal(normalise(pixels, factor, offset)));
  }
}

TEST(LayersOnGpuTest, TwoRunsGiveTheSameBits) {
  const at::Tensor x = image({16, 128, 28, 28}, at::kBFloat16), push = image({16, 128, 28, 28}, at::kBFloat16);
  const auto run = [&] {
    const at::Tensor input = leaf(x), weight = leaf(at::ones({128})), bias = leaf(at::zeros({128}));
    const at::Tensor output = fused_batch_norm(
        {input, {}, weight, bias, at::zeros({128}).to(kGpu), at::ones({128}).to(kGpu), 0.1, 1e-5, true});
    output.backward(push.to(kGpu));
    return at::cat({output.flatten().to(at::kFloat), input.grad().flatten().to(at::kFloat), weight.grad()});
  };
  EXPECT_TRUE(run().equal(run()));
}

}  // namespace
}  // namespace lockstep::kernel
