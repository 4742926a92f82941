// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/network.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

Network narrow_network() {
  spec::Model model;
  model.name = "smallcnn";
  model.classes = 4;
  model.width = 8;
  return make_network(model, 32, 1);
}

TEST(NetworkTest, RunningInTwoPartsIsRunningAtOnce) {
  const Network network = narrow_network();
  const at::Tensor images = at::ones({2, 3, 32, 32});
  const Bundle features = network.run({images}, Mode::evaluate, 0, 3);
  const at::Tensor logits = network.run(features, Mode::evaluate, 3, network.blocks().size())[0];
  EXPECT_TRUE(logits.equal(network.forward({{"image", images}}, Mode::evaluate).at("output")));
}

TEST(NetworkTest, TheLayoutOfTheImagesDoesNotMatter) {
  const Network network = narrow_network();
  const at::Tensor images = at::ones({2, 32, 32, 3}).cumsum(1).permute({0, 3, 1, 2});
  EXPECT_TRUE(network.forward({{"image", images}}, Mode::evaluate)
                  .at("output")
                  .equal(network.forward({{"image", images.contiguous()}}, Mode::evaluate).at("output")));
}

TEST(NetworkTest, ForwardReadsItsWeightsFromTheBlocks) {
  const Network network = narrow_network();
  const at::Tensor images = at::ones({1, 3, 32, 32});
  for (const auto& block : network.blocks()) {
    for (Named& parameter : block->parameters) parameter.tensor = parameter.tensor.detach().to(at::kBFloat16);
  }
  const at::Tensor logits = network.forward({{"image", images.to(at::kBFloat16)}}, Mode::train).at("output");
  EXPECT_EQ(logits.scalar_type(), at::kBFloat16);
}

TEST(NetworkTest, ATwinSharesTheWeightsAndNothingElse) {
  const Network network = narrow_network();
  const std::optional<Network> twin = network.twin();
  ASSERT_TRUE(twin);
  const at::Tensor images = at::ones({2, 3, 32, 32});
  EXPECT_TRUE(twin->forward({{"image", images}}, Mode::evaluate)
                  .at("output")
                  .equal(network.forward({{"image", images}}, Mode::evaluate).at("output")));
  twin->forward({{"image", images}}, Mode::train).at("output").sum().backward();
  at::Tensor weight = network.parameters().front().tensor;
  EXPECT_TRUE(twin->parameters().front().tensor.is_same(weight) == false && !weight.grad().defined());
  EXPECT_TRUE(twin->parameters().front().tensor.grad().defined());
  EXPECT_FALSE(twin->buffers().front().tensor.equal(network.buffers().front().tensor));
  weight.detach().fill_(0.25);
  EXPECT_EQ(twin->parameters().front().tensor.min().item<double>(), 0.25);
}

class GivesOn final : public Block {
 public:
  using Block::Block;
  Bundle run(const Bundle& input, Mode) override { return input; }
};

TEST(NetworkTest, CastsImagesAndLeavesWhatIsExact) {
  std::vector<std::unique_ptr<Block>> blocks;
  for (const char* name : {"stem", "head"}) blocks.push_back(std::make_unique<GivesOn>(name));
  const Network network("boxes", std::move(blocks), at::MemoryFormat::ChannelsLast,
                        {.inputs = {"image", "boxes", "labels"}, .exact = {"boxes"}});
  const Bundle inputs{at::ones({1, 3, 2, 2}), at::ones({1, 4}), at::ones({1}, at::kLong)};
  const Bundle cast = network.cast(inputs, at::kBFloat16);
  EXPECT_EQ(cast[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(cast[1].scalar_type(), at::kFloat);
  EXPECT_EQ(cast[2].scalar_type(), at::kLong);
}

TEST(NetworkTest, AnUnknownBlockNamesTheNearest) {
  try {
    narrow_network().index_of("blok2");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_STREQ(error.what(), "smallcnn has no block 'blok2'");
    EXPECT_THAT(error.fix(), testing::HasSubstr("'block2'"));
  }
}

}  // namespace
}  // namespace lockstep::model
