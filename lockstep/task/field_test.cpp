// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/field.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

TEST(FieldTest, KnowsItsBytes) {
  spec::Data data;
  data.image_size = {384, 1248};
  data.pixels = spec::Pixels::bf16;
  const Field image = image_field(data);
  EXPECT_EQ(image.shape, (std::vector<int64_t>{3, 384, 1248}));
  EXPECT_EQ(image.bytes(), 3 * 384 * 1248 * 2);
  EXPECT_EQ(row_bytes({image, {.name = "label", .element = Element::int64}}), image.bytes() + 8);
}

TEST(FieldTest, IsFoundByItsName) {
  const std::vector<Field> fields{{.name = "image"}, {.name = "label"}};
  EXPECT_EQ(index_of(fields, "label"), 1U);
  EXPECT_THROW(index_of(fields, "boxes"), base::Error);
}

TEST(FieldTest, ValuesLieSampleBySample) {
  FieldValues values{{.name = "pair", .element = Element::int64, .shape = {2}}, std::vector<std::byte>(2 * 16)};
  *reinterpret_cast<int64_t*>(values.row(1)) = 7;
  EXPECT_EQ(values.values<int64_t>(1)[0], 7);
  EXPECT_EQ(values.values<int64_t>()[2], 7);
}

}  // namespace
}  // namespace lockstep::task
