// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/evaluate.h"

#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {

TEST(EvaluateTest, SeesEverySampleOnceAndKeepsTheStatistics) {
  const auto collection = data::synthetic_collection(10, tiny::kClasses);
  data::LoaderOptions options;
  options.data.image_size = tiny::kSize;
  options.use = data::Use::evaluate;
  options.global_batch = 4;
  const auto loader = data::make_loader(collection, options, {.seed = 1});
  const auto network = tiny::network();
  const double before = network.buffers()[0].tensor.sum().item<double>();
  const auto group = comm::single_group();
  std::vector<int64_t> seen;
  const auto metrics = evaluate(network, *loader, *group,
                                {.classes = tiny::kClasses, .worst = 2, .seen = [&](int64_t n) { seen.push_back(n); }});
  EXPECT_EQ(metrics.samples(), 10);
  EXPECT_EQ(seen, (std::vector<int64_t>{4, 8, 10}));
  EXPECT_EQ(network.buffers()[0].tensor.sum().item<double>(), before);
}

}  // namespace lockstep::step
