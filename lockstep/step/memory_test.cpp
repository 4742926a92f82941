// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>

namespace lockstep::step {
namespace {

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void touch_64_mib() {
  const auto block = std::make_unique<char[]>(64 << 20);
  std::memset(block.get(), 1, 64 << 20);
}

TEST(MemoryTest, TheSecondUseOfALargeBlockFaultsInNoPages) {
  keep_freed_memory();
  touch_64_mib();
  const int64_t before = page_faults();
  touch_64_mib();
  EXPECT_LT(page_faults() - before, 1000);  // 64 MiB are 16384 pages
}

}  // namespace
}  // namespace lockstep::step
