// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/weights.h"

#include <ATen/TensorOperators.h>
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

Network small_detector(int64_t classes, int64_t seed) {
  spec::Model model;
  model.name = "maskrcnn_resnet18_fpn";
  model.classes = classes;
  model.width = 4;
  return make_network(model, 64, seed);
}

std::vector<weights::TensorView> views_of(const std::vector<Named>& tensors) {
  std::vector<weights::TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    views.push_back({name,
                     weights::Dtype::F32,
                     tensor.sizes().vec(),
                     {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  return views;
}

std::vector<Named> lying_tensors(const Network& network) {
  std::vector<Named> all = network.parameters();
  for (const Named& buffer : network.buffers()) all.push_back(buffer);
  for (Named& named : all) named.tensor = named.tensor.detach().contiguous();
  return all;
}

TEST(WeightsTest, ADetectorOfOtherClassesKeepsItsHeadsFresh) {
  const Network saved = small_detector(3, 1);
  Network loaded = small_detector(5, 2);
  const auto tensors = lying_tensors(saved);
  const LoadReport report = load_weights(loaded, views_of(tensors), "w");
  EXPECT_THAT(report.fresh,
              testing::UnorderedElementsAre(
                  "roi_heads.box_predictor.cls_score.weight", "roi_heads.box_predictor.cls_score.bias",
                  "roi_heads.box_predictor.bbox_pred.weight", "roi_heads.box_predictor.bbox_pred.bias",
                  "roi_heads.mask_predictor.mask_fcn_logits.weight", "roi_heads.mask_predictor.mask_fcn_logits.bias"));
}

TEST(WeightsTest, TheWeightsOfAClassifierBecomeTheTrunkOfADetector) {
  spec::Model model;
  model.name = "resnet18";
  model.classes = 7;
  model.width = 4;
  const Network classifier = make_network(model, 64, 1);
  Network detector = small_detector(3, 2);
  const auto tensors = lying_tensors(classifier);
  const LoadReport report = load_weights(detector, views_of(tensors), "w");
  EXPECT_THAT(report.ignored, testing::ElementsAre("backbone.body.fc.bias", "backbone.body.fc.weight"));
  EXPECT_EQ(report.loaded.size() + 2, tensors.size());
  EXPECT_THAT(report.fresh, testing::Contains("backbone.fpn.inner_blocks.0.0.weight"));
  EXPECT_TRUE(detector.parameters()[0].tensor.equal(classifier.parameters()[0].tensor));
}

TEST(WeightsTest, OldDetectorsHaveOtherNamesAndNothingBesideTheVariance) {
  const Network saved = small_detector(3, 1);
  Network loaded = small_detector(3, 2);
  auto tensors = lying_tensors(saved);
  const std::pair<const char*, const char*> kOld[] = {{"rpn.head.conv.0.0.", "rpn.head.conv."},
                                                      {"mask_head.0.0.", "mask_head.mask_fcn1."},
                                                      {"mask_head.1.0.", "mask_head.mask_fcn2."},
                                                      {"mask_head.2.0.", "mask_head.mask_fcn3."},
                                                      {"mask_head.3.0.", "mask_head.mask_fcn4."},
                                                      {"_blocks.0.0.", "_blocks.0."},
                                                      {"_blocks.1.0.", "_blocks.1."},
                                                      {"_blocks.2.0.", "_blocks.2."},
                                                      {"_blocks.3.0.", "_blocks.3."}};
  for (Named& named : tensors) {
    for (const auto& [now, then] : kOld) {
      const size_t at = named.name.find(now);
      if (at != std::string::npos) named.name.replace(at, std::string(now).size(), then);
    }
  }
  const LoadReport report = load_weights(loaded, views_of(tensors), "w");
  EXPECT_EQ(report.loaded.size(), tensors.size());
  EXPECT_TRUE(report.ignored.empty());
  const auto variance = [](const Network& network) { return network.buffers()[1].tensor; };
  EXPECT_EQ(loaded.buffers()[1].name, "backbone.body.bn1.running_var");
  EXPECT_TRUE(variance(loaded).equal(variance(saved) - 1e-5));
}

}  // namespace
}  // namespace lockstep::model
