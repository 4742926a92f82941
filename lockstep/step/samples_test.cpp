// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/samples.h"

#include <gtest/gtest.h>

#include <span>

namespace lockstep::step {
namespace {

template <class Value>
std::vector<std::byte> bytes_of(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class Value>
task::FieldValues image_of(task::Element element, const std::vector<Value>& values) {
  return {{"image", element, {3, 1, 1}, task::Field::Kind::image}, bytes_of(values)};
}

loader::Batch four_pixels() {  // 2 images of 1 x 1
  loader::Batch batch;
  batch.step = 7;
  batch.global_size = 5;
  batch.sample_ids = {3, 1};
  batch.was_read = {1, 1};
  batch.fields = {image_of<float>(task::Element::fp32, {1, 2, 3, 4, 5, 6}),
                  {{.name = "label", .element = task::Element::int64}, bytes_of<int64_t>({0, 1})}};
  return batch;
}

TEST(SamplesTest, LookIntoTheMemoryOfTheBatch) {
  const loader::Batch batch = four_pixels();
  const Samples samples = to_samples(batch, at::kCPU);
  EXPECT_EQ(samples.fields.at("image").const_data_ptr(), static_cast<const void*>(batch.fields[0].bytes.data()));
  EXPECT_EQ(samples.fields.at("image")[1][2][0][0].item<float>(), 6);
  EXPECT_EQ(samples.global_size, 5);
  EXPECT_EQ(samples.rows(), 2);
}

TEST(SamplesTest, BytesAreNormalisedAndHalvesAreLookedAt) {
  loader::Batch batch = four_pixels();
  batch.fields[0] = image_of<uint8_t>(task::Element::uint8, {0, 51, 102, 153, 204, 255});
  batch.normalisation = {{0.5f, 0.5f, 0.2f}, {0.5f, 0.25f, 1}};
  const Samples bytes = to_samples(batch, at::kCPU);
  EXPECT_EQ(bytes.fields.at("image").scalar_type(), at::kFloat);
  EXPECT_EQ(bytes.fields.at("image").sizes(), (std::vector<int64_t>{2, 3, 1, 1}));
  EXPECT_NEAR(bytes.fields.at("image")[0][0][0][0].item<float>(), -1, 1e-6);
  EXPECT_NEAR(bytes.fields.at("image")[0][1][0][0].item<float>(), (0.2 - 0.5) / 0.25, 1e-6);
  EXPECT_NEAR(bytes.fields.at("image")[1][2][0][0].item<float>(), 0.8, 1e-6);
  batch.fields[0] = image_of<uint16_t>(task::Element::bf16, {0x3F80, 0x4000, 0, 0, 0, 0xBF80});  // 1, 2, .., -1
  const Samples halves = to_samples(batch, at::kCPU);
  EXPECT_EQ(halves.fields.at("image").scalar_type(), at::kBFloat16);
  EXPECT_EQ(halves.fields.at("image")[0][1][0][0].item<float>(), 2);
  EXPECT_EQ(halves.fields.at("image")[1][2][0][0].item<float>(), -1);
}

TEST(SamplesTest, ASliceHasItsRowsAndTheRestOfTheWhole) {
  const loader::Batch batch = four_pixels();
  const Samples part = to_samples(batch, at::kCPU).slice(1, 1);
  EXPECT_EQ(part.rows(), 1);
  EXPECT_EQ(part.fields.at("label")[0].item<int64_t>(), 1);
  EXPECT_EQ(part.fields.at("image")[0][0][0][0].item<float>(), 4);
  EXPECT_EQ(part.num_read(), 1);
  EXPECT_EQ(part.step, 7);
  EXPECT_EQ(part.global_size, 5);
}

}  // namespace
}  // namespace lockstep::step
