// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/samples.h"

#include <gtest/gtest.h>

namespace lockstep::step {
namespace {

loader::Batch four_pixels() {  // 2 images of 1 x 1
  loader::Batch batch;
  batch.step = 7;
  batch.global_size = 5;
  batch.image_size = 1;
  batch.sample_ids = {3, 1};
  batch.targets = {0, 1};
  batch.images = {1, 2, 3, 4, 5, 6};
  return batch;
}

TEST(SamplesTest, LookIntoTheMemoryOfTheBatch) {
  const loader::Batch batch = four_pixels();
  const Samples samples = to_samples(batch, at::kCPU);
  EXPECT_EQ(samples.values.const_data_ptr(), static_cast<const void*>(batch.images.data()));
  EXPECT_EQ(samples.values[1][2][0][0].item<float>(), 6);
  EXPECT_EQ(samples.global_size, 5);
  EXPECT_EQ(samples.rows(), 2);
}

TEST(SamplesTest, BytesAreNormalisedAndHalvesAreLookedAt) {
  loader::Batch batch = four_pixels();
  batch.images.clear();
  batch.bytes = {0, 51, 102, 153, 204, 255};
  batch.normalisation = {{0.5f, 0.5f, 0.2f}, {0.5f, 0.25f, 1}};
  const Samples bytes = to_samples(batch, at::kCPU);
  EXPECT_EQ(bytes.values.scalar_type(), at::kFloat);
  EXPECT_EQ(bytes.values.sizes(), (std::vector<int64_t>{2, 3, 1, 1}));
  EXPECT_NEAR(bytes.values[0][0][0][0].item<float>(), -1, 1e-6);
  EXPECT_NEAR(bytes.values[0][1][0][0].item<float>(), (0.2 - 0.5) / 0.25, 1e-6);
  EXPECT_NEAR(bytes.values[1][2][0][0].item<float>(), 0.8, 1e-6);
  batch.bytes.clear();
  batch.halves = {0x3F80, 0x4000, 0, 0, 0, 0xBF80};  // 1, 2, .., -1
  const Samples halves = to_samples(batch, at::kCPU);
  EXPECT_EQ(halves.values.scalar_type(), at::kBFloat16);
  EXPECT_EQ(halves.values[0][1][0][0].item<float>(), 2);
  EXPECT_EQ(halves.values[1][2][0][0].item<float>(), -1);
}

TEST(SamplesTest, ASliceHasItsRowsAndTheRestOfTheWhole) {
  const loader::Batch batch = four_pixels();
  const Samples part = to_samples(batch, at::kCPU).slice(1, 1);
  EXPECT_EQ(part.rows(), 1);
  EXPECT_EQ(part.targets[0].item<int64_t>(), 1);
  EXPECT_EQ(part.values[0][0][0][0].item<float>(), 4);
  EXPECT_EQ(part.step, 7);
  EXPECT_EQ(part.global_size, 5);
}

}  // namespace
}  // namespace lockstep::step
