// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/weights.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

Network small_network(int64_t classes, int64_t seed, int64_t width = 8) {
  spec::Model model;
  model.name = "smallcnn";
  model.classes = classes;
  model.width = width;
  return make_network(model, 32, seed);
}

TEST(WeightsTest, ALoadedNetworkGivesTheSameLogits) {
  const base::TemporaryFolder folder;
  const Network saved = small_network(3, 1);
  Network loaded = small_network(3, 2);
  save_weights(saved, folder.path() / "w.safetensors");
  const LoadReport report = load_weights(loaded, folder.path() / "w.safetensors");
  EXPECT_EQ(report.loaded.size(), saved.parameters().size() + saved.buffers().size());
  EXPECT_TRUE(report.fresh.empty() && report.ignored.empty());
  const at::Tensor images = at::ones({1, 3, 32, 32});
  EXPECT_TRUE(saved.forward({{"image", images}}, Mode::evaluate)
                  .at("output")
                  .equal(loaded.forward({{"image", images}}, Mode::evaluate).at("output")));
}

TEST(WeightsTest, AHeadOfAnotherClassCountStaysFresh) {
  const base::TemporaryFolder folder;
  const Network saved = small_network(3, 1);
  save_weights(saved, folder.path() / "w.safetensors");
  Network loaded = small_network(5, 2);
  const at::Tensor head = loaded.parameters().back().tensor.clone();
  const LoadReport report = load_weights(loaded, folder.path() / "w.safetensors");
  EXPECT_THAT(report.fresh, testing::ElementsAre("head.weight", "head.bias"));
  EXPECT_TRUE(loaded.parameters().back().tensor.equal(head));
  EXPECT_TRUE(loaded.parameters()[0].tensor.equal(saved.parameters()[0].tensor));
}

TEST(WeightsTest, AnotherShapeNamesTheTensorAndBothShapes) {
  const base::TemporaryFolder folder;
  save_weights(small_network(3, 1, 8), folder.path() / "w.safetensors");
  Network wider = small_network(3, 2, 16);
  const at::Tensor before = wider.parameters()[0].tensor.clone();
  try {
    load_weights(wider, folder.path() / "w.safetensors");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("'stem.conv.weight' has the shape [8, 3, 3, 3], smallcnn needs [16, 3, 3, 3]"));
  }
  EXPECT_TRUE(wider.parameters()[0].tensor.equal(before));
}

TEST(WeightsTest, WeightsOfAnotherNetworkAreRefusedWithTheMissingNames) {
  const base::TemporaryFolder folder;
  save_weights(small_network(3, 1), folder.path() / "w.safetensors");
  spec::Model model;
  model.name = "mlp";
  model.classes = 3;
  Network other = make_network(model, 32, 1);
  try {
    load_weights(other, folder.path() / "w.safetensors");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("are not in it: stem.weight"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("It has block1.conv.weight"));
  }
}

TEST(WeightsTest, AFileThatGivesNothingIsRefused) {
  const base::TemporaryFolder folder;
  weights::write_safetensors(folder.path() / "w",
                             std::vector{weights::TensorView{"other", weights::Dtype::F32, {0}, {}}});
  spec::Model model;
  model.name = "linear";  // every tensor of it belongs to the classifier
  model.classes = 3;
  Network network = make_network(model, 8, 1);
  try {
    load_weights(network, folder.path() / "w");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("none of its tensors fits linear"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("It has other"));
  }
}

TEST(WeightsTest, OldDenseNetAndDistributedNamesAreUnderstood) {
  const base::TemporaryFolder folder;
  spec::Model model;
  model.name = "densenet121";
  model.classes = 2;
  model.width = 4;
  const Network saved = make_network(model, 32, 1);
  save_weights(saved, folder.path() / "new.safetensors");
  const weights::SafetensorsFile file(folder.path() / "new.safetensors");
  std::vector<weights::TensorView> old = file.tensors();
  for (weights::TensorView& view : old) {
    for (const char* part : {"norm1.", "norm2.", "conv1.", "conv2."}) {
      const size_t at = view.name.find(part);
      if (view.name.find("denselayer") != std::string::npos && at != std::string::npos) view.name.insert(at + 4, ".");
    }
    view.name = "module." + view.name;
  }
  weights::write_safetensors(folder.path() / "old.safetensors", old);
  Network loaded = make_network(model, 32, 2);
  const LoadReport report = load_weights(loaded, folder.path() / "old.safetensors");
  EXPECT_EQ(report.loaded.size(), old.size());
  EXPECT_TRUE(loaded.parameters()[3].tensor.equal(saved.parameters()[3].tensor));
}

}  // namespace
}  // namespace lockstep::model
