// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/sweep.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/measure/calibrate.h"
#include "lockstep/measure/operator_watch.h"

namespace lockstep::measure {
namespace {

using forecast::OperatorClass;

SweepRange tiny_range() {
  return {at::kCPU, {forecast::NumberType::fp32, forecast::NumberType::bf16}, {1, 2}, 6e7, 3e6};
}

TEST(SweepTest, StaysWithinItsRange) {
  const auto range = SweepRange::of(at::kCPU);
  const auto cases = make_sweep(range, 1);
  EXPECT_GT(cases.size(), 500U);
  for (const auto& one : cases) {
    EXPECT_LE(one.flops, range.most_flops) << one.label;
    EXPECT_LE(one.bytes, range.most_bytes) << one.label;
    EXPECT_FALSE(one.contiguous) << "the processor's step has one layout";
  }
}

TEST(SweepTest, TheSeedDecidesTheOrder) {
  const auto labels = [](uint64_t seed) {
    std::vector<std::string> all;
    for (const auto& one : make_sweep(tiny_range(), seed)) all.push_back(one.label);
    return all;
  };
  EXPECT_EQ(labels(1), labels(1));
  EXPECT_NE(labels(1), labels(2));
}

TEST(SweepTest, TheSmallCasesRunAndMeetEveryClassOfTraining) {
  std::set<OperatorClass> met;
  std::set<std::string> done;
  for (const auto& one : make_sweep(tiny_range(), 1)) {
    if (!done.insert(one.label.substr(0, one.label.find(' ', 5))).second) continue;
    for (const auto& seen : watch_operators(one.make(), {.repeats = 1}).operators) met.insert(seen.what.kind);
  }
  for (const auto kind :
       {OperatorClass::matmul, OperatorClass::convolution, OperatorClass::convolution_input_gradient,
        OperatorClass::convolution_weight_gradient, OperatorClass::attention, OperatorClass::attention_gradient,
        OperatorClass::batch_norm, OperatorClass::batch_norm_gradient, OperatorClass::layer_norm,
        OperatorClass::layer_norm_gradient, OperatorClass::elementwise, OperatorClass::reduction,
        OperatorClass::softmax, OperatorClass::pooling, OperatorClass::pooling_gradient, OperatorClass::copy}) {
    EXPECT_TRUE(met.contains(kind)) << name_of(kind);
  }
}

}  // namespace
}  // namespace lockstep::measure
