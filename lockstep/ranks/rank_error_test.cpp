// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/rank_error.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace lockstep::ranks {
namespace {

using ::testing::HasSubstr;

base::Error caught(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return rank_error(error);
  }
  return {base::Blame::user, "nothing was thrown"};
}

TEST(RankErrorTest, MissingMemoryIsTheMachinesAndHasItsFix) {
  for (const auto& body : std::vector<std::function<void()>>{
           [] { at::empty({int64_t{1} << 60}); },  // the host's allocator
           [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 20 GiB"); },
           [] { throw std::bad_alloc(); }}) {
    const base::Error error = caught(body);
    EXPECT_EQ(error.blame(), base::Blame::machine) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("out of memory"));
    EXPECT_THAT(error.fix(), HasSubstr("micro_batch"));
  }
}

TEST(RankErrorTest, OursStaysAsItIsAndTheRestIsABug) {
  EXPECT_EQ(caught([] { throw base::Error(base::Blame::user, "no", "yes"); }).fix(), "yes");
  EXPECT_EQ(caught([] { TORCH_CHECK(false, "shapes differ"); }).blame(), base::Blame::bug);
  const base::Error odd = caught([] { throw std::logic_error("odd"); });
  EXPECT_EQ(odd.exit_code(), 4);
  EXPECT_THAT(odd.message(), HasSubstr("odd"));
}

}  // namespace
}  // namespace lockstep::ranks
