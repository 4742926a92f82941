// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/kernel/boxes.h"
#include "lockstep/kernel/mask_targets.h"
#include "lockstep/kernel/match.h"
#include "lockstep/kernel/nms.h"
#include "lockstep/kernel/roi_align.h"
#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

// Calls `op` with a function that makes tensors, on the simulated GPU and on the CPU: the results lie alike.
template <class Op>
void expect_alike(const Op& op) {
  const WatchedDevice watched;
  const auto on_cpu = [](at::IntArrayRef sizes, at::ScalarType type = at::kFloat) { return at::zeros(sizes, type); };
  const auto simulated = [](at::IntArrayRef sizes, at::ScalarType type = at::kFloat) { return on_gpu(sizes, type); };
  const std::vector<at::Tensor> here = op(simulated), there = op(on_cpu);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(layout(here[i]), layout(there[i])) << i;
}

kernel::Pyramid pyramid(const auto& make_tensor) {
  kernel::Pyramid maps;
  for (size_t i = 0; i < maps.size(); ++i) maps[i] = make_tensor({2, 8, 32 >> i, 48 >> i}).requires_grad_(true);
  return maps;
}

TEST(RegionsTest, ResultsLieAsOnTheCpu) {
  expect_alike([](const auto& tensor) {
    return std::vector<at::Tensor>{kernel::anchors(tensor({1}), {{4, 5}, {2, 3}}, 16, 20)};
  });
  expect_alike([](const auto& tensor) {
    return std::vector<at::Tensor>{kernel::decode_boxes(tensor({2, 5, 4}), tensor({2, 5, 3, 4}), tensor({2, 2}), {}),
                                   kernel::encode_boxes(tensor({2, 5, 4}), tensor({2, 5, 4}), {})};
  });
  expect_alike([](const auto& tensor) {
    const kernel::Kept kept = kernel::nms(tensor({2, 9, 4}), tensor({2, 9}), tensor({2, 9}, at::kLong), 0.5, 4);
    return std::vector<at::Tensor>{kept.indices, kept.valid};
  });
  expect_alike([](const auto& tensor) {
    return std::vector<at::Tensor>{
        kernel::match(tensor({1, 9, 4}), tensor({2, 3, 4}), tensor({2, 3}, at::kLong), {.best_of_object = true})};
  });
  expect_alike([](const auto& tensor) {
    const kernel::MaskTargets targets =
        kernel::mask_targets({tensor({2, 3, 14, 14}, at::kByte), tensor({2, 3, 4}), tensor({2, 2})},
                             tensor({2, 5}, at::kLong), tensor({2, 5, 4}), 28);
    return std::vector<at::Tensor>{targets.values, targets.present};
  });
  expect_alike([](const auto& tensor) {
    const kernel::Pyramid maps = pyramid(tensor);
    const at::Tensor seen = kernel::roi_align(maps, tensor({2, 5, 4}), {});
    seen.sum().backward();
    return std::vector<at::Tensor>{seen, maps[0].grad(), maps[3].grad()};
  });
}

TEST(RegionsTest, SuppressionNeedsABitForEveryPair) {
  WatchedDevice watched;
  kernel::nms(on_gpu({2, 1000, 4}), on_gpu({2, 1000}), on_gpu({2, 1000}, at::kLong), 0.5, 100);
  const auto recording = watched.finish();
  int64_t most = 0;
  for (const auto& event : recording.events) most = std::max(most, event.bytes);
  EXPECT_EQ(most, 2 * 1000 * 16 * 8);
  EXPECT_TRUE(recording.estimated.empty());
}

}  // namespace
}  // namespace lockstep::trace
