// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/roofline.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/catalogue/catalogue.h"

namespace lockstep::forecast {
namespace {

const catalogue::Catalogue& embedded() {
  static const catalogue::Catalogue all = catalogue::load_embedded();
  return all;
}

TEST(RooflineTest, IsTheLargerOfOperationsAndBytes) {
  const Rates h200 = rates_of(embedded().gpu("h200"));
  const Roofline product = roofline({.type = NumberType::bf16, .flops = 989e9, .bytes = 48e8 / 2}, h200);
  EXPECT_NEAR(product.compute, 1e-3, 1e-6);
  EXPECT_NEAR(product.memory, 0.5e-3, 1e-6);
  EXPECT_TRUE(product.compute_bound());
  EXPECT_DOUBLE_EQ(product.seconds(), product.compute);
  const Roofline sum = roofline({.flops = 1e6, .bytes = 48e8}, h200);
  EXPECT_NEAR(sum.seconds(), 1e-3, 1e-6);
  EXPECT_FALSE(sum.compute_bound());
}

TEST(RooflineTest, CountsATypeThatTheGpuLacksAtWhatStandsInForIt) {
  const Rates p100 = rates_of(embedded().gpu("p100"));
  EXPECT_DOUBLE_EQ(p100.flops_of(NumberType::fp16), 21.22e12);  // vector units, twice fp32
  EXPECT_DOUBLE_EQ(p100.flops_of(NumberType::bf16), 10.61e12);
  EXPECT_DOUBLE_EQ(p100.flops_of(NumberType::tf32), 10.61e12);
  ASSERT_EQ(p100.notes.size(), 1U);
  EXPECT_EQ(p100.notes[0].words, "p100 has no fp16 tensor cores: counted at its fp16 vector rate");
  const Rates pascal = rates_of(embedded().gpu("gtx1080ti"));  // its fp16 units are slower than its fp32 ones
  EXPECT_DOUBLE_EQ(pascal.flops_of(NumberType::fp16), 11.34e12);
  const Rates v100 = rates_of(embedded().gpu("v100-32"));
  EXPECT_DOUBLE_EQ(v100.flops_of(NumberType::fp16), 125e12);
  EXPECT_DOUBLE_EQ(v100.flops_of(NumberType::bf16), 15.67e12);
}

TEST(RooflineTest, TakesHalfOfTheSixteenBitRateForAnUnstatedTf32) {
  EXPECT_DOUBLE_EQ(rates_of(embedded().gpu("rtx5090")).flops_of(NumberType::tf32), 209.5e12 / 2);
}

TEST(RooflineTest, NamesTheRateThatTheCatalogueLacks) {
  try {
    rates_of(embedded().gpu("h100-64"));
    FAIL() << "foretold a GPU without rates";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(std::string(error.what()).find("bandwidth_gbs"), std::string::npos);
  }
}

TEST(RooflineTest, CoresShareTheBandwidthOfTheirSocket) {
  const auto& epyc = embedded().cpu("epyc-7742");
  EXPECT_DOUBLE_EQ(rates_of(epyc, 2).bandwidth, 30e9);
  EXPECT_DOUBLE_EQ(rates_of(epyc, 64).bandwidth, 204.8e9);
  EXPECT_DOUBLE_EQ(rates_of(epyc, 128).bandwidth, 2 * 204.8e9);
  EXPECT_DOUBLE_EQ(rates_of(epyc, 64).flops_of(NumberType::fp32), 64 * 2.25e9 * 32);
  EXPECT_DOUBLE_EQ(rates_of(epyc, 64).flops_of(NumberType::bf16), 64 * 2.25e9 * 32);
  EXPECT_GT(rates_of(embedded().cpu("xeon-8480"), 56).flops_of(NumberType::bf16),
            rates_of(embedded().cpu("xeon-8480"), 56).flops_of(NumberType::fp32));
}

}  // namespace
}  // namespace lockstep::forecast
