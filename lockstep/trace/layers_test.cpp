// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/forecast/kernel_grid.h"
#include "lockstep/kernel/fused_batch_norm.h"
#include "lockstep/kernel/max_pool.h"
#include "lockstep/kernel/tokens.h"
#include "lockstep/model/lstm_layer.h"
#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

// Calls `op` with a function that makes tensors of 16 bit, on the simulated GPU and on the CPU: the results lie alike.
template <class Op>
void expect_layers_alike(const Op& op) {
  const WatchedDevice watched;
  const auto on_cpu = [](at::IntArrayRef sizes, at::ScalarType type = at::kBFloat16) { return at::zeros(sizes, type); };
  const auto simulated = [](at::IntArrayRef sizes, at::ScalarType type = at::kBFloat16) { return on_gpu(sizes, type); };
  const std::vector<at::Tensor> here = op(simulated), there = op(on_cpu);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(layout(here[i]), layout(there[i])) << i;
}

at::Tensor map_of(const auto& tensor, at::IntArrayRef sizes) {
  return tensor(sizes).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true);
}

TEST(LayersTest, LinearAndGeluLieAsOnTheCpu) {
  expect_layers_alike([](const auto& tensor) {
    const at::Tensor input = tensor({2, 5, 16}).requires_grad_(true), weight = tensor({24, 16}).requires_grad_(true);
    const at::Tensor bias = tensor({24}).requires_grad_(true);
    const at::Tensor output = kernel::linear_gelu(input, weight, bias);
    output.sum().backward();
    return std::vector<at::Tensor>{output, input.grad(), weight.grad(), bias.grad()};
  });
}

TEST(LayersTest, ResultsLieAsOnTheCpu) {
  expect_layers_alike([](const auto& tensor) {
    const at::Tensor input = map_of(tensor, {2, 16, 6, 7}), added = map_of(tensor, {2, 16, 6, 7});
    const auto channel = [&] { return tensor({16}, at::kFloat); };
    const at::Tensor weight = channel().requires_grad_(true), bias = channel().requires_grad_(true);
    const at::Tensor output =
        kernel::fused_batch_norm({input, added, weight, bias, channel(), channel(), 0.1, 1e-5, true});
    output.sum().backward();
    return std::vector<at::Tensor>{output, input.grad(), added.grad(), weight.grad(), bias.grad()};
  });
  expect_layers_alike([](const auto& tensor) {
    const at::Tensor input = map_of(tensor, {2, 16, 6, 7});
    const at::Tensor output = kernel::max_pool(input, {3, 2, 1, false});
    output.sum().backward();
    return std::vector<at::Tensor>{output, input.grad()};
  });
  expect_layers_alike([](const auto& tensor) {
    const at::Tensor input = tensor({2, 5, 32}).requires_grad_(true), branch = tensor({2, 5, 32}).requires_grad_(true);
    const at::Tensor weight = tensor({32}, at::kFloat).requires_grad_(true);
    const at::Tensor bias = tensor({32}, at::kFloat).requires_grad_(true);
    const kernel::SumAndNorm both = kernel::add_layer_norm(input, branch, weight, bias, 1e-6);
    both.normalized.sum().backward();
    return std::vector<at::Tensor>{both.sum, both.normalized, input.grad(), branch.grad(), weight.grad(), bias.grad()};
  });
  expect_layers_alike([](const auto& tensor) {
    const at::Tensor qkv = tensor({2, 5, 3 * 4 * 8}).requires_grad_(true);
    const kernel::Heads heads = kernel::split_qkv(qkv, 4);
    (heads.query.sum() + heads.key.sum() + heads.value.sum()).backward();
    return std::vector<at::Tensor>{heads.query, heads.value, qkv.grad()};
  });
  expect_layers_alike([](const auto& tensor) {
    const at::Tensor input = tensor({2, 5, 16}).requires_grad_(true), weight = tensor({24, 16}).requires_grad_(true);
    const at::Tensor bias = tensor({24}).requires_grad_(true);
    const at::Tensor output = kernel::linear(input, weight, bias);
    output.sum().backward();
    return std::vector<at::Tensor>{output, input.grad(), weight.grad(), bias.grad()};
  });
}

// The kernels of the gates take pixels with their channels side by side. A map of one channel lies both ways.
TEST(LayersTest, TheStatesOfAnLstmLieChannelsLastWhateverComesIn) {
  const WatchedDevice watched;
  for (const int64_t in : {1, 3}) {
    model::LstmLayer layer;
    layer.input = on_gpu({6, in, 5, 7}).contiguous(at::MemoryFormat::ChannelsLast);
    layer.input_weight = on_gpu({32, in, 3, 3}).requires_grad_(true);
    layer.state_weight = on_gpu({32, 8, 3, 3}).requires_grad_(true);
    layer.bias = on_gpu({32});
    layer.peepholes = on_gpu({3, 8});
    layer.steps = 3;
    layer.fused = true;
    const model::LstmStates states = model::run_lstm_layer(layer);
    EXPECT_TRUE(states.hidden.is_contiguous(at::MemoryFormat::ChannelsLast)) << in;
    EXPECT_TRUE(states.cells.is_contiguous(at::MemoryFormat::ChannelsLast)) << in;
  }
}

TEST(LayersTest, ABatchNormKeepsABitAnElementAndHasItsScratch) {
  WatchedDevice watched;
  const auto map = [] { return on_gpu({4, 64, 8, 8}, at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast); };
  const auto channel = [] { return on_gpu({64}); };
  kernel::fused_batch_norm({map(), map(), channel(), channel(), channel(), channel(), 0.1, 1e-5, true});
  const auto recording = watched.finish();
  const auto born = [&](int64_t bytes) {
    return std::any_of(recording.events.begin(), recording.events.end(),
                       [&](const auto& event) { return event.bytes == bytes; });
  };
  EXPECT_TRUE(born(4 * 64 * 8 * 8 / 8));
  EXPECT_TRUE(born(4 * forecast::BatchNormGrid(4 * 8 * 8, 64).sums()));
  EXPECT_TRUE(recording.estimated.empty());
}

TEST(LayersTest, ASimulatedGpuTakesThem) {
  const WatchedDevice watched;
  const at::Tensor map = on_gpu({4, 64, 8, 8}, at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(kernel::takes_fused_batch_norm(map));
  EXPECT_TRUE(kernel::takes_max_pool(map));
  EXPECT_FALSE(kernel::takes_fused_batch_norm(on_gpu({4, 64, 8, 8})));  // fp32
  EXPECT_FALSE(kernel::takes_fused_batch_norm(on_gpu({4, 12, 8, 8}, at::kBFloat16)));
}

}  // namespace
}  // namespace lockstep::trace
