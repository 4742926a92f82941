// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/training/agreed_threads.h"
#include "tests/mpi/ranks.h"

namespace lockstep::training {

TEST(MpiThreadsTest, RanksOfDifferentNodesComputeWithTheLeast) {
  comm::Group& group = mpi_test::ranks();
  EXPECT_EQ(agree_on_threads(8 - group.rank(), group), 8 - (group.size() - 1));
}

}  // namespace lockstep::training
