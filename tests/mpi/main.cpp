// SPDX-License-Identifier: Apache-2.0
// Every rank runs the same tests in the same order; mpirun fails when one of them does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "lockstep/comm/group.h"
#include "tests/mpi/ranks.h"

namespace {
lockstep::comm::Group* joined = nullptr;
}

namespace lockstep::mpi_test {
comm::Group& ranks() {
  return *joined;
}
}  // namespace lockstep::mpi_test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  alarm(100);  // a hang ends here, by name of the test printed last
  const auto group = lockstep::comm::join_group();
  if (group->size() < 2) {
    std::fprintf(stderr, "run me with mpirun -n 2\n");
    return 1;
  }
  joined = group.get();
  if (group->rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  return RUN_ALL_TESTS();
}
