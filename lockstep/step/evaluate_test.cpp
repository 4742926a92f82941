// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/evaluate.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/run/evaluation.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

EvaluateOptions tiny_evaluation(int64_t worst, std::function<void(int64_t)> seen) {
  spec::Job job;
  job.model.classes = tiny::kClasses;
  return {.task = task::make_task(job),
          .objective = objective::make_objective(job),
          .worst = worst,
          .seen = std::move(seen)};
}

}  // namespace

TEST(EvaluateTest, SeesEverySampleOnceAndKeepsTheStatistics) {
  const auto collection = loader::synthetic_collection(10, tiny::kClasses);
  loader::LoaderOptions options;
  options.data.image_size = tiny::kSize;
  options.use = loader::Use::evaluate;
  options.global_batch = 4;
  const auto loader = loader::make_loader(collection, options, {.seed = 1});
  const auto network = tiny::network();
  const double before = network.buffers()[0].tensor.sum().item<double>();
  const auto group = comm::single_group();
  std::vector<int64_t> seen;
  const auto score = evaluate(network, *loader, *group, tiny_evaluation(2, [&](int64_t n) { seen.push_back(n); }));
  EXPECT_EQ(score->samples(), 10);
  EXPECT_EQ(seen, (std::vector<int64_t>{4, 8, 10}));
  EXPECT_EQ(network.buffers()[0].tensor.sum().item<double>(), before);
}

TEST(EvaluateTest, AnyNumberOfRanksHasTheScoreOfOneToTheLastBit) {
  const auto collection = loader::synthetic_collection(29, tiny::kClasses);  // 8 batches of 4, the last one of 1
  const auto network = tiny::network();
  const auto packed = [&](int64_t ranks) {
    std::string result;
    std::atomic<int64_t> rows = 0;
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      const run::EvaluationShare share = run::evaluation_share(29, 4, group.rank(), group.size());
      loader::LoaderOptions options;
      options.data.image_size = tiny::kSize;
      options.use = loader::Use::evaluate;
      options.global_batch = 4;
      options.batches = share.batches;
      const auto loader = loader::make_loader(collection, options, share.from);
      int64_t mine = 0;
      const auto score =
          evaluate(network, *loader, group, tiny_evaluation(24, [&](int64_t samples) { mine = samples; }));
      rows += mine;
      if (group.rank() == 0) result = score->pack();
    });
    EXPECT_EQ(rows, 29) << ranks << " ranks";  // each once, none made up
    return result;
  };
  const auto one = packed(1);
  for (const int64_t ranks : {2, 3, 4, 9}) EXPECT_EQ(packed(ranks), one) << ranks << " ranks";
}

}  // namespace lockstep::step
