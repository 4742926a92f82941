// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/chunk_norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::step {
namespace {

at::Tensor wave(int64_t size) {
  return (at::arange(size, at::kFloat) * 0.37).sin();
}

TEST(ChunkNormTest, IsTheEuclideanNorm) {
  const std::vector<at::Tensor> tensors{wave(200'003), wave(5), wave(0)};
  double expected = 0;
  for (const auto& tensor : tensors) expected += tensor.to(at::kDouble).square().sum().item<double>();
  EXPECT_NEAR(chunk_norm(tensors), std::sqrt(expected), 1e-12 * std::sqrt(expected));
  EXPECT_EQ(chunk_norm({}), 0);
  EXPECT_NEAR(chunk_norms(tensors)[1], tensors[1].norm().item<double>(), 1e-6);
}

TEST(ChunkNormTest, HasTheSameBitsOnAnyNumberOfThreads) {
  const at::Tensor tensor = wave(1'000'003);
  const int before = at::get_num_threads();
  std::vector<double> norms;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    norms.push_back(chunk_norm({tensor}));
  }
  at::set_num_threads(before);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

TEST(ChunkNormTest, ChunksOfAPartitionAreThoseOfTheWhole) {
  const at::Tensor tensor = wave(3 * kNormChunk + 17);
  const auto whole = chunk_squares(tensor);
  ASSERT_EQ(whole.size(), 4u);
  auto parts = chunk_squares(tensor.narrow(0, 0, kNormChunk));
  for (const double square : chunk_squares(tensor.narrow(0, kNormChunk, 2 * kNormChunk + 17))) parts.push_back(square);
  EXPECT_EQ(parts, whole);
}

TEST(ChunkNormTest, CountsInTheOrderOfTheMemory) {
  const at::Tensor images = wave(2 * 3 * 300 * 200).view({2, 3, 300, 200});
  const at::Tensor last = images.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor flat = last.permute({0, 2, 3, 1}).reshape({-1});
  EXPECT_EQ(chunk_squares(last), chunk_squares(flat));
}

TEST(ChunkNormTest, TellsWhatIsNotFinite) {
  at::Tensor tensor = at::zeros({70'000});
  tensor[69'999].fill_(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(std::isfinite(chunk_norm({tensor})));
}

}  // namespace
}  // namespace lockstep::step
