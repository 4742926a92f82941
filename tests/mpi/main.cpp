// SPDX-License-Identifier: Apache-2.0
// Every rank runs the same tests in the same order; mpirun fails when one of them does.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

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

// The first rank prints as usual; the others only what went wrong.
class Failures : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed())
      std::printf("rank %lld: %s:%d: %s\n", static_cast<long long>(joined->rank()), result.file_name(),
                  result.line_number(), result.summary());
  }
};

// What the others hear when one is gone: ctest holds the launcher to a failure in time, not a hang.
void lose_a_rank(lockstep::comm::Group& group) {
  if (group.rank() == 1) std::_Exit(7);
  at::Tensor value = at::full({1000}, 1.0);
  group.all_reduce_sum(value);
  std::printf("the sum of a lost rank arrived\n");
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  alarm(100);  // a hang ends here, by name of the test printed last
  const auto group = lockstep::comm::join_group();
  if (group->size() < 2) {
    std::fprintf(stderr, "run me with mpirun -n 2\n");
    return 1;
  }
  joined = group.get();
  if (argc > 1 && std::string_view(argv[1]) == "--lose-a-rank") lose_a_rank(*group);
  if (group->rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures);
  }
  return RUN_ALL_TESTS();
}
