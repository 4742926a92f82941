// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/boxes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

at::Tensor row(const at::Tensor& boxes, int64_t index) {
  return boxes.reshape({-1, 4})[index];
}

TEST(BoxesTest, AnchorsAreThoseOfTorchvision) {
  const std::vector<Grid> grids{{2, 3}, {1, 2}};
  const at::Tensor all = anchors(at::zeros({1}), grids, 8, 12);
  EXPECT_EQ(all.sizes().vec(), (std::vector<int64_t>{(6 + 2) * 3, 4}));
  EXPECT_TRUE(row(all, 0).equal(at::tensor({-23.F, -11.F, 23.F, 11.F})));
  EXPECT_TRUE(row(all, 1).equal(at::tensor({-16.F, -16.F, 16.F, 16.F})));
  EXPECT_TRUE(row(all, 2).equal(at::tensor({-11.F, -23.F, 11.F, 23.F})));
  EXPECT_TRUE(row(all, 4).equal(at::tensor({-12.F, -16.F, 20.F, 16.F})));   // the next cell, 4 pixels to the right
  EXPECT_TRUE(row(all, 10).equal(at::tensor({-16.F, -12.F, 16.F, 20.F})));  // the next row
  EXPECT_TRUE(row(all, 19).equal(at::tensor({-32.F, -32.F, 32.F, 32.F})));  // the next map
  EXPECT_EQ(anchors(at::empty({1}, at::kMeta), grids, 8, 12).sizes(), all.sizes());
}

TEST(BoxesTest, DecodingUndoesEncoding) {
  const at::Tensor corners = at::rand({2, 5, 2}) * 40, more = at::rand({2, 5, 2}) * 40;
  const auto box = [&](const at::Tensor& corner, const at::Tensor& side) {
    return at::cat({corner, corner + side}, 2);
  };
  const at::Tensor from = box(corners, at::rand({2, 5, 2}) * 20 + 5), to = box(more, at::rand({2, 5, 2}) * 20 + 5);
  const BoxCoder coder{.position = 10, .size = 5};
  const at::Tensor deltas = encode_boxes(from, to, coder);
  const at::Tensor shown = at::full({2, 2}, 100.F);
  EXPECT_TRUE(at::allclose(decode_boxes(from, deltas.unsqueeze(2), shown, coder).squeeze(2), to, 1e-4, 1e-3));
}

TEST(BoxesTest, ADecodedBoxStaysInTheImageAndGrowsNoFurtherThanTheLimit) {
  const at::Tensor from = at::tensor({10.F, 10.F, 26.F, 26.F}).view({1, 1, 4});
  const at::Tensor deltas = at::tensor({0.F, 0.F, 50.F, 0.F}).view({1, 1, 1, 4});
  const auto decoded = [&](float height, float width) {
    return row(decode_boxes(from, deltas, at::tensor({height, width}).view({1, 2}), {}), 0);
  };
  EXPECT_TRUE(decoded(20, 30).equal(at::tensor({0.F, 10.F, 30.F, 20.F})));
  EXPECT_TRUE(at::allclose(decoded(20, 5000), at::tensor({0.F, 10.F, 518.F, 20.F})));  // 16 pixels become 1000
  EXPECT_TRUE(decoded(0, 0).equal(at::zeros({4})));
}

TEST(BoxesTest, ABoxWithoutAreaHasNoDeltas) {
  const at::Tensor boxes = at::tensor({0.F, 0.F, 0.F, 0.F, 1.F, 1.F, 5.F, 5.F}).view({1, 2, 4});
  const at::Tensor swapped = boxes.flip(1);
  EXPECT_TRUE(encode_boxes(boxes, swapped, {}).equal(at::zeros({1, 2, 4})));
}

}  // namespace
}  // namespace lockstep::kernel
