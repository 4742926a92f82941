// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/extents.h"

#include <gtest/gtest.h>

#include "lockstep/loader/fake_store.h"

namespace lockstep::loader {
namespace {

TEST(ExtentsTest, CutsShardsIntoExtentsOfTheAskedLength) {
  const Extents extents(FakeStore(), 130, 4096);
  ASSERT_FALSE(extents.empty());
  int64_t next = 0;
  for (const Extent& extent : extents.all()) {
    EXPECT_EQ(extent.samples.begin, next);
    next = extent.samples.end;
    EXPECT_LE(extent.size, 4096);
    EXPECT_EQ(extent.samples.begin / 50, (extent.samples.end - 1) / 50) << "one file";
    for (int64_t id = extent.samples.begin; id < extent.samples.end; ++id) {
      EXPECT_EQ(&extents.all()[static_cast<size_t>(extents.of(id))], &extent);
      const Location where = FakeStore().locate(id);
      EXPECT_GE(where.offset, extent.offset);
      EXPECT_LE(where.offset + where.size, extent.offset + extent.size);
    }
  }
  EXPECT_EQ(next, 130);
  EXPECT_EQ(Extents(FakeStore(), 10, 1).all().size(), 10u) << "one image at least in each";
}

}  // namespace
}  // namespace lockstep::loader
