// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/thread_scope.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace lockstep::step {
namespace {

TEST(ThreadScopeTest, HoldsForItsLifetime) {
  const int before = at::get_num_threads();
  {
    const ThreadScope scope(before + 1);
    EXPECT_EQ(at::get_num_threads(), before + 1);
    const ThreadScope none(0);
    EXPECT_EQ(at::get_num_threads(), before + 1);
  }
  EXPECT_EQ(at::get_num_threads(), before);
}

}  // namespace
}  // namespace lockstep::step
