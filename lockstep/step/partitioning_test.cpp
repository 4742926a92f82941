// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/partitioning.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/step/step.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

// What plain data parallel and its cut forms may differ by after some steps of fp32: sums of other order.
constexpr double kRelative = 1e-4;
constexpr double kAbsolute = 1e-5;

struct CutRecipe {
  std::string model = "smallcnn";
  int64_t image_size = 8;
  std::vector<int64_t> batches = {13, 12, 13};  // rows of each step, over all ranks
  spec::Training training = {};
  std::string train_from = "";
  bool freeze_norm = false;
};

model::Network network_of(const CutRecipe& recipe) {
  at::set_num_threads(1);
  spec::Model model;
  model.name = recipe.model;
  model.classes = 3;
  if (recipe.model.starts_with("vit")) {
    model.depth = 2;
    model.width = 48;
  } else {
    model.width = recipe.model.starts_with("resnet") ? 8 : 4;
  }
  return model::make_network(model, recipe.image_size, 7);
}

// This rank's rows of a batch, as the loader cuts it.
Samples share(const CutRecipe& recipe, const comm::Group& group, int64_t rows, int64_t step) {
  const int64_t start = group.rank() * rows / group.size();
  const int64_t count = (group.rank() + 1) * rows / group.size() - start;
  const int64_t pixels = 3 * recipe.image_size * recipe.image_size;
  const at::Tensor values =
      (at::arange(count * pixels, at::kFloat).add(static_cast<double>(start * pixels + 31 * step)) * 0.37).sin();
  return {step,
          0,
          rows,
          {{"image", values.view({count, 3, recipe.image_size, recipe.image_size})},
           {"label", at::arange(start, start + count, at::kLong).remainder(3)}}};
}

using State = std::map<std::string, at::Tensor>;

struct End {
  State weights, optimizer;
  std::vector<double> losses, norms;
};

State copies(const std::vector<model::Named>& named) {
  State all;
  for (const auto& entry : named) all[entry.name] = entry.tensor.detach().clone();
  return all;
}

std::vector<model::Named> listed(const State& state) {
  std::vector<model::Named> all;
  for (const auto& [name, tensor] : state) all.push_back({name, tensor});
  return all;
}

// One session: from `start` (nothing: fresh) through steps [first, last). What rank 0 ends with; the others must agree.
End train(const CutRecipe& recipe, int64_t ranks, int64_t first, int64_t last, const End* start = nullptr) {
  std::vector<End> ends(static_cast<size_t>(ranks));
  comm::run_thread_ranks(ranks, [&](comm::Group& group) {
    auto network = network_of(recipe);
    if (start) {
      for (auto entry : network.parameters()) entry.tensor.detach().copy_(start->weights.at(entry.name));
      for (auto entry : network.buffers()) entry.tensor.copy_(start->weights.at(entry.name));
    }
    StepOptions options{.training = recipe.training, .freeze_norm = recipe.freeze_norm};
    if (!recipe.train_from.empty()) options.train_from = network.index_of(recipe.train_from);
    Step step(network, group, options);
    if (start) step.load_state(listed(start->optimizer));
    End& end = ends[static_cast<size_t>(group.rank())];
    for (int64_t i = first; i < last; ++i) {
      const auto result = step.run(share(recipe, group, recipe.batches[static_cast<size_t>(i)], i), 0.05);
      EXPECT_TRUE(result.finite);
      end.losses.push_back(result.loss);
      end.norms.push_back(result.gradient_norm);
    }
    step.assemble();
    end.weights = copies(network.parameters());
    end.weights.merge(copies(network.buffers()));
    end.optimizer = copies(step.state());
  });
  for (const auto& other : ends) {
    for (const auto& [name, tensor] : ends[0].weights) EXPECT_TRUE(at::equal(tensor, other.weights.at(name))) << name;
    for (const auto& [name, tensor] : ends[0].optimizer) {
      EXPECT_TRUE(at::equal(tensor, other.optimizer.at(name))) << name;
    }
  }
  return ends[0];
}

End train(const CutRecipe& recipe, int64_t ranks) {
  return train(recipe, ranks, 0, static_cast<int64_t>(recipe.batches.size()));
}

void expect_close(const State& a, const State& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << what << " " << name;
    EXPECT_EQ(tensor.sizes(), b.at(name).sizes()) << what << " " << name;
    EXPECT_TRUE(at::allclose(tensor.to(at::kDouble), b.at(name).to(at::kDouble), kRelative, kAbsolute))
        << what << " " << name << " differs by "
        << (tensor.to(at::kDouble) - b.at(name).to(at::kDouble)).abs().max().item<double>();
  }
}

// Every level against plain data parallel of the same ranks.
void expect_plain(CutRecipe recipe, const std::vector<int64_t>& rank_counts, const std::vector<int64_t>& levels) {
  for (const int64_t ranks : rank_counts) {
    recipe.training.zero = 0;
    const End plain = train(recipe, ranks);
    for (const int64_t level : levels) {
      recipe.training.zero = level;
      const End cut = train(recipe, ranks);
      const std::string what = base::text(recipe.model, ", ", ranks, " ranks, zero ", level);
      expect_close(plain.weights, cut.weights, what);
      expect_close(plain.optimizer, cut.optimizer, what);
      for (size_t i = 0; i < plain.losses.size(); ++i) {
        EXPECT_NEAR(plain.losses[i], cut.losses[i], 1e-4) << what;
        EXPECT_NEAR(plain.norms[i], cut.norms[i], 1e-4 * (1 + plain.norms[i])) << what;
      }
    }
  }
}

spec::Training with(spec::OptimizerName name) {
  spec::Training training;
  training.optimizer.name = name;
  training.optimizer.weight_decay = 0.01;
  return training;
}

TEST(PartitioningTest, GiveTheWeightsOfPlainDataParallelWithSgd) {
  for (const char* model : {"mlp", "smallcnn"}) {
    expect_plain({.model = model, .training = with(spec::OptimizerName::sgd)}, {1, 2, 3, 4}, {1, 2, 3});
  }
}

TEST(PartitioningTest, GiveTheWeightsOfPlainDataParallelWithAdamw) {
  for (const char* model : {"mlp", "smallcnn"}) {
    expect_plain({.model = model, .training = with(spec::OptimizerName::adamw)}, {2, 3}, {1, 2, 3});
  }
}

TEST(PartitioningTest, GoWithAResnetAndAVisionTransformer) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
    expect_plain({.model = "resnet18", .image_size = 32, .batches = {6, 5}, .training = with(name)}, {2}, {1, 2, 3});
    expect_plain({.model = "vit_tiny_patch16_224", .image_size = 32, .batches = {7, 6}, .training = with(name)}, {3},
                 {1, 2, 3});
  }
}

TEST(PartitioningTest, LevelOneHasTheBitsOfPlainDataParallel) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
    CutRecipe recipe{.training = with(name)};
    for (const int64_t ranks : {2, 3, 4}) {
      recipe.training.zero = 0;
      const End plain = train(recipe, ranks);
      recipe.training.zero = 1;
      const End cut = train(recipe, ranks);
      for (const auto& [name_of, tensor] : plain.weights) {
        EXPECT_TRUE(at::equal(tensor, cut.weights.at(name_of))) << ranks << " " << name_of;
      }
    }
  }
}

TEST(PartitioningTest, WithVirtualRanksLevelOneHasTheSameBitsOnAnyNumberOfRanks) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw, spec::OptimizerName::lamb}) {
    CutRecipe recipe{.model = "mlp", .batches = {16, 16, 12}, .training = with(name)};
    recipe.training.virtual_ranks = 4;  // slices that 2 and 4 ranks cut as the loader does
    recipe.training.clip_norm = 0.5;
    recipe.training.zero = 1;
    const End one = train(recipe, 1);
    for (const int64_t ranks : {2, 4}) {
      const End many = train(recipe, ranks);
      for (const auto& [tensor, value] : one.weights) EXPECT_TRUE(at::equal(value, many.weights.at(tensor))) << tensor;
      for (const auto& [tensor, value] : one.optimizer) {
        EXPECT_TRUE(at::equal(value, many.optimizer.at(tensor))) << tensor;
      }
    }
  }
}

TEST(PartitioningTest, MeasureWholeLayersForLarsAndLamb) {
  for (const auto name : {spec::OptimizerName::lars, spec::OptimizerName::lamb}) {
    expect_plain({.training = with(name)}, {2, 3}, {1, 2, 3});
  }
}

TEST(PartitioningTest, TrainABatchSmallerThanTheRanksAreMany) {
  expect_plain({.model = "mlp", .batches = {9, 2, 9, 1}}, {3, 4}, {1, 2, 3});
}

TEST(PartitioningTest, SumMicroBatchesOfWhichRanksHaveDifferentNumbers) {
  CutRecipe recipe{.model = "mlp", .batches = {13, 9, 2}};
  recipe.training.micro_batch = 2;  // of 13 rows on 3 ranks: passes of 2, 2 (and 2, 2, 1)
  expect_plain(recipe, {2, 3}, {1, 2, 3});
}

TEST(PartitioningTest, ClipByTheNormOfAllPartsOrByTheirValues) {
  CutRecipe recipe{.training = with(spec::OptimizerName::sgd)};
  recipe.training.clip_norm = 0.1;
  expect_plain(recipe, {3}, {1, 2, 3});
  recipe.training.clip_norm = 0;
  recipe.training.clip_value = 0.01;
  expect_plain(recipe, {3}, {1, 2, 3});
}

TEST(PartitioningTest, LeaveFrozenBlocksWholeAndAsTheyAre) {
  CutRecipe recipe{.train_from = "head"};
  expect_plain(recipe, {2}, {1, 2, 3});
  const End before = train(recipe, 1, 0, 0);
  recipe.training.zero = 3;
  const End after = train(recipe, 2);
  for (const auto& [name, tensor] : before.weights) {
    EXPECT_EQ(at::equal(tensor, after.weights.at(name)), !name.starts_with("head.")) << name;
  }
}

TEST(PartitioningTest, GoWithFrozenNormsAndRecomputation) {
  CutRecipe recipe{.freeze_norm = true};
  recipe.training.recompute = {"all"};
  expect_plain(recipe, {2}, {1, 2, 3});
}

TEST(PartitioningTest, GoWithSixteenBits) {
  for (const auto precision : {spec::Precision::bf16, spec::Precision::amp}) {
    for (const char* model : {"resnet18", "vit_tiny_patch16_224", "smallcnn"}) {
      CutRecipe recipe{.model = model, .image_size = 32, .batches = {6}, .training = with(spec::OptimizerName::sgd)};
      recipe.training.precision = precision;
      if (recipe.model == "smallcnn") recipe.image_size = 8;  // maps of 1 x 1: taps that meet padding alone
      expect_plain(recipe, {2}, {1, 2, 3});
    }
  }
}

TEST(PartitioningTest, ResumeOnOtherRanksWithAnotherLevelAsIfNothingHadHappened) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
    CutRecipe recipe{.batches = {12, 12, 12, 12}, .training = with(name)};
    recipe.model = "mlp";  // batch norms would see other shares
    const End straight = train(recipe, 1);
    recipe.training.zero = 3;
    const End half = train(recipe, 2, 0, 2);
    recipe.training.zero = 1;
    const End whole = train(recipe, 3, 2, 4, &half);
    expect_close(straight.weights, whole.weights, "weights");
    expect_close(straight.optimizer, whole.optimizer, "optimizer");
  }
}

TEST(PartitioningTest, RefuseTheStateOfAnotherModelByName) {
  CutRecipe recipe{.batches = {6}};
  recipe.training.zero = 1;
  End end = train(recipe, 2);
  end.optimizer.erase("momentum.head.fc.weight");
  end.optimizer.erase("momentum.head.weight");
  EXPECT_THROW(train(recipe, 2, 0, 1, &end), base::Error);
}

TEST(PartitioningTest, AStepThatIsNotFiniteChangesNothingOnAnyRank) {
  for (const int64_t level : {1, 2, 3}) {
    comm::run_thread_ranks(2, [&](comm::Group& group) {
      const CutRecipe recipe;
      auto network = network_of(recipe);
      StepOptions options;
      options.training.zero = level;
      Step step(network, group, options);
      step.run(share(recipe, group, 8, 0), 0.1);
      step.assemble();
      const State before = copies(network.parameters());
      Samples samples = share(recipe, group, 8, 1);
      if (group.rank() == 1) samples.fields.at("image").fill_(std::numeric_limits<double>::infinity());
      EXPECT_FALSE(step.run(samples, 0.1).finite);
      step.assemble();
      for (const auto& [name, tensor] : copies(network.parameters())) EXPECT_TRUE(at::equal(tensor, before.at(name)));
    });
  }
}

TEST(PartitioningTest, OnlyWantedTensorsOfTheStateAreKept) {
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    auto network = tiny::network("mlp");
    StepOptions options;
    options.training.zero = 2;
    Step step(network, group, options);
    step.run(tiny::samples(group.rank() * 4, 4, 8), 0.1);
    const auto state = step.state([&](const std::string&) { return group.rank() == 1; });
    EXPECT_EQ(state.empty(), group.rank() == 0);
    if (group.rank() == 1) {
      EXPECT_EQ(state.size(), network.parameters().size() + 1);
      int64_t bytes = 0;
      for (const auto& entry : state) bytes += static_cast<int64_t>(entry.tensor.nbytes());
      EXPECT_EQ(bytes, step.state_bytes());
    }
  });
}

TEST(PartitioningTest, NormsOfPartitionsAreThoseOfWholeParameters) {
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    auto network = tiny::network("mlp");
    const Partitioning partitioning(network, 0, group, 1);
    std::vector<at::Tensor> partitions;
    for (const auto& partition : partitioning.partitions()) partitions.push_back(partition.tensor);
    const auto norms = partitioning.norms(partitions);
    const auto parameters = network.parameters();
    ASSERT_EQ(norms.size(), parameters.size());
    for (size_t i = 0; i < norms.size(); ++i) {
      EXPECT_NEAR(norms[i], parameters[i].tensor.norm().item<double>(), 1e-5) << parameters[i].name;
    }
  });
}

TEST(PartitioningTest, WhoWritesIntoWeightsThatAreNotThereGetsAnError) {
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    auto network = tiny::network("mlp");
    StepOptions options;
    options.training.zero = 3;
    Step step(network, group, options);
    step.run(tiny::samples(group.rank() * 4, 4, 8), 0.1);
    at::Tensor weight = network.parameters().front().tensor.detach();
    EXPECT_THROW(weight.copy_(at::zeros_like(weight)), c10::Error);
    EXPECT_EQ(weight.storage().nbytes(), sizeof(float));
    step.assemble();
    network.parameters().front().tensor.detach().fill_(1);  // and this is what is trained from here on
    step.run(tiny::samples(group.rank() * 4, 4, 8, 1), 0);
    step.assemble();
    EXPECT_TRUE(at::equal(network.parameters().front().tensor.detach(),
                          at::zeros_like(network.parameters().front().tensor.detach()) + 1));
  });
}

}  // namespace
}  // namespace lockstep::step
