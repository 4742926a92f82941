// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/memory.h"

namespace lockstep::forecast {
namespace {

TEST(MemoryRulesTest, TakeTheDriversFigureWhereThereIsOne) {
  const auto catalogue = catalogue::load_embedded();
  const MemoryRules h200 = memory_rules(catalogue.gpu("h200"));
  EXPECT_EQ(h200.capacity, int64_t{143771} << 20);
  EXPECT_EQ(h200.cublas_workspace, int64_t{32} << 20);
  EXPECT_EQ(h200.warps, 132 * 64);
  EXPECT_EQ(memory_rules(catalogue.gpu("a100-40")).warps, 108 * 64);
  EXPECT_EQ(memory_rules(catalogue.gpu("a100-40")).cublas_workspace, 8519680);
}

TEST(MemoryRulesTest, TakeAPartOfTheMakersFigureOtherwise) {
  auto gpu = catalogue::load_embedded().gpu("v100-32");
  const auto known = static_cast<double>(memory_rules(gpu).capacity);
  gpu.driver_memory_mib.reset();
  EXPECT_NEAR(static_cast<double>(memory_rules(gpu).capacity) / known, 1, 0.01);
  gpu.memory_gb.reset();
  EXPECT_THROW(memory_rules(gpu), base::Error);
}

TEST(MemoryRulesTest, EveryGpuOfTheCatalogueHasRules) {
  for (const auto& gpu : catalogue::load_embedded().gpus) {
    const MemoryRules rules = memory_rules(gpu);
    EXPECT_GT(rules.capacity, int64_t{1} << 31) << gpu.id;
    EXPECT_LE(rules.capacity, static_cast<int64_t>(*gpu.memory_gb * (int64_t{1} << 30))) << gpu.id;
    EXPECT_GT(rules.context, 0);
    EXPECT_FALSE(rules.basis.empty());
  }
}

TEST(HostMemoryTest, EveryRankHasItsOwnLoadersAndTheNodeOneCheckpoint) {
  Recording recording;
  recording.checkpoint_bytes = 100;
  HostNeeds needs{.loader = 7, .pinned = 5, .features = 3, .staged = 60};
  const HostMemory one = forecast_host_memory(recording, needs);
  EXPECT_EQ(one.total, one.processes + 7 + 5 + 3 + 60 + 100);
  needs.ranks = 4;
  const HostMemory four = forecast_host_memory(recording, needs);
  EXPECT_EQ(four.total, 4 * (one.processes + 7 + 5 + 3) + 60 + 100);
  needs.gpu = false;
  EXPECT_LT(forecast_host_memory(recording, needs).processes, four.processes);
}

TEST(MemoryRulesTest, AHeapHasHoles) {
  EXPECT_EQ(forecast_heap_holes(0), 0);
  EXPECT_EQ(forecast_heap_holes(854'000'000), 213'500'000);
}

}  // namespace
}  // namespace lockstep::forecast
