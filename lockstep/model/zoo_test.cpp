// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/network.h"
#include "lockstep/spec/recipe.h"

namespace lockstep::model {
namespace {

spec::Model named(const std::string& name, int64_t classes = 10) {
  spec::Model model;
  model.name = name;
  model.classes = classes;
  return model;
}

TEST(ZooTest, EveryNetworkIsAStemBlocksAndAHeadWithDistinctNames) {
  for (const std::string& name : network_names()) {
    const Network network = make_network(named(name), 224, 1, at::kMeta);
    std::set<std::string> names;
    for (const auto& block : network.blocks()) EXPECT_TRUE(names.insert(block->name()).second) << block->name();
    EXPECT_EQ(network.blocks().front()->name(), "stem");
    EXPECT_EQ(network.blocks().back()->name(), "head");
    EXPECT_FALSE(network.blocks().back()->classifier.empty()) << name;
    std::set<std::string> tensors;
    for (const Named& parameter : network.parameters()) EXPECT_TRUE(tensors.insert(parameter.name).second);
    for (const Named& buffer : network.buffers()) EXPECT_TRUE(tensors.insert(buffer.name).second);
  }
}

// What the recipe does with weights depends on it (spec/recipe.cpp).
TEST(ZooTest, ANetworkTakesAnySizeOfImageWhenNoParameterDependsOnIt) {
  const auto shapes = [](const std::string& name, int64_t size) {
    std::vector<std::vector<int64_t>> all;
    for (const Named& parameter : make_network(named(name), size, 1, at::kMeta).parameters()) {
      all.push_back(parameter.tensor.sizes().vec());
    }
    return all;
  };
  const std::set<std::string> without_published_weights{"linear", "mlp", "smallcnn"};
  for (const std::string& name : network_names()) {
    if (without_published_weights.count(name)) continue;
    const Network network = make_network(named(name), 224, 1, at::kMeta);
    if (network.interface().outputs.front() != "output") continue;  // a detector sees no crop
    if (network.interface().inputs.front() != "image") continue;    // a sentence has no size
    base::Json document = base::Json::object();
    document["model"]["name"] = name;
    EXPECT_EQ(spec::takes_any_size(document), shapes(name, 224) == shapes(name, 448)) << name;
  }
}

TEST(ZooTest, TheSameSeedGivesTheSameWeights) {
  const auto first = make_network(named("smallcnn"), 64, 7).parameters();
  const auto second = make_network(named("smallcnn"), 64, 7).parameters();
  const auto other = make_network(named("smallcnn"), 64, 8).parameters();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].tensor.equal(second[i].tensor)) << first[i].name;
  EXPECT_FALSE(first[0].tensor.equal(other[0].tensor));
}

TEST(ZooTest, ForwardGivesOneLogitPerClassAndEveryParameterGetsAGradient) {
  for (const char* name : {"linear", "mlp", "smallcnn", "resnet18"}) {
    const Network network = make_network(named(name, 3), 32, 1);
    const NamedTensors output = network.forward({{"image", at::ones({2, 3, 32, 32})}}, Mode::train);
    EXPECT_EQ(output.at("output").sizes().vec(), (std::vector<int64_t>{2, 3}));
    output.at("output").sum().backward();
    for (const Named& parameter : network.parameters())
      EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
  }
}

TEST(ZooTest, GoogLeNetGivesAuxiliaryLogitsInTrainingOnly) {
  const Network network = make_network(named("googlenet", 4), 64, 1);
  const at::Tensor images = at::ones({2, 3, 64, 64});
  const NamedTensors training = network.forward({{"image", images}}, Mode::train);
  ASSERT_EQ(training.size(), 3U);
  EXPECT_EQ(training.at("aux1").sizes().vec(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(network.forward({{"image", images}}, Mode::evaluate).size(), 1U);
}

TEST(ZooTest, DropoutAndDropPathActInTrainingOnly) {
  spec::Model model = named("vit_tiny_patch16_224", 4);
  model.depth = 2;
  model.dropout = 0.5;
  model.drop_path = 0.5;
  const Network network = make_network(model, 32, 1);
  const at::Tensor images = at::ones({4, 3, 32, 32});
  const auto logits = [&](Mode mode) { return network.forward({{"image", images}}, mode).at("output"); };
  EXPECT_TRUE(logits(Mode::evaluate).equal(logits(Mode::evaluate)));
  EXPECT_FALSE(logits(Mode::train).equal(logits(Mode::train)));
}

TEST(ZooTest, AnImageThatPatchesDoNotTileIsAnError) {
  try {
    make_network(named("vit_tiny_patch16_224"), 100, 1);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("data.image_size: 100 is no multiple"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("use 96 or 112"));
  }
}

TEST(ZooTest, AnImageThatVanishesBeforeTheLastBlocksIsAnError) {
  for (const auto& [name, least] : {std::pair{"convnext_tiny", 32}, {"squeezenet1_0", 21}, {"squeezenet1_1", 17}}) {
    const Network network = make_network(named(name), least, 1);
    EXPECT_EQ(network.forward({{"image", at::ones({1, 3, least, least})}}, Mode::evaluate).at("output").size(1), 10);
    try {
      make_network(named(name), {64, least - 1}, 1);
      FAIL();
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(base::text("data.image_size: ", least - 1, " leaves nothing for")));
      EXPECT_EQ(error.fix(), base::text("use ", least, " or more"));
    }
  }
}

TEST(ZooTest, SmallCnnIsSmall) {
  const Network network = make_network(named("smallcnn"), 64, 1);
  EXPECT_GT(network.parameter_count(), 300'000);
  EXPECT_LT(network.parameter_count(), 500'000);
}

TEST(ZooTest, AnUnknownNameNamesTheNearest) {
  try {
    make_network(named("resnet5O"), 224, 1);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.fix(), testing::HasSubstr("resnet50"));
  }
}

TEST(ZooTest, AnOverrideTheNetworkCannotObeyIsAnError) {
  spec::Model model = named("resnet18");
  model.heads = 4;
  try {
    make_network(model, 224, 1);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "model.heads: resnet18 cannot change this");
  }
}

TEST(ZooTest, EveryNumberOfTheModelSectionIsAnOverride) {
  const base::Json defaults = spec::to_json(spec::Job{});
  int64_t numbers = 0;
  for (const auto& member : defaults.at("model").members()) {
    const std::string& key = member.key;
    if (key == "classes" || !member.value.is_number()) continue;
    ++numbers;
    base::Json document = base::parse_json(
        R"({"name": "x", "data": {"train": "synthetic", "samples": 4}, "model": {"name": "linear", "classes": 2},
            "training": {"global_batch": 2, "steps": 1}})",
        "test");
    const std::string share = key.starts_with("drop") ? "=0.5" : "=1";
    const spec::Job job = spec::parse_job(document, {"model." + key + share});
    EXPECT_THROW(make_network(job.model, 32, 1), base::Error) << key;
  }
  EXPECT_GE(numbers, 7);
}

}  // namespace
}  // namespace lockstep::model
