// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/batch.h"

#include <gtest/gtest.h>

namespace lockstep::loader {
namespace {

TEST(BatchTest, DrawsRowsThatDependOnTheirNumberAloneWithLabelsInTurn) {
  spec::Job job;
  job.data.image_size = 4;
  job.model.classes = 3;
  const Batch all = draw_batch(job, 0, 5), later = draw_batch(job, 3, 2);
  EXPECT_EQ(all.size(), 5);
  EXPECT_EQ(all.global_size, 5);
  EXPECT_EQ(later.sample_ids, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(later.was_read, (std::vector<uint8_t>{1, 1}));
  for (int64_t row = 0; row < 5; ++row) EXPECT_EQ(*all.field("label").values<int64_t>(row), row % 3);
  const auto bytes = [](const Batch& batch, int64_t row) {
    const auto& image = batch.field("image");
    const std::byte* first = image.bytes.data() + row * image.field.bytes();
    return std::vector<std::byte>(first, first + image.field.bytes());
  };
  EXPECT_EQ(bytes(later, 0), bytes(all, 3));
  EXPECT_NE(bytes(later, 0), bytes(later, 1));
}

}  // namespace
}  // namespace lockstep::loader
