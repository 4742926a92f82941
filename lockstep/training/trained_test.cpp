// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/trained.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/weights.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/saved_tensors.h"
#include "lockstep/training/small_run.h"

namespace lockstep::training {
namespace {

using testing::HasSubstr;

std::string complaint(const TrainedOptions& options) {
  try {
    load_trained(options);
    return "";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.message();
  }
}

TEST(TrainedTest, LoadsARunWithItsClasses) {
  const SmallRun small;
  const Trained trained = load_trained({small.run()});
  EXPECT_EQ(trained.classes, small.classes());
  EXPECT_EQ(trained.weights, small.run() / "weights.safetensors");
  EXPECT_EQ(trained.network.name(), small.job().model.name);
}

// The network of `small`, saved without a word about its classes.
void save_plain(const SmallRun& small, const base::Path& path) {
  model::save_weights(load_trained({small.run()}).network, path);
}

TEST(TrainedTest, TakesTheClassNamesFromTheTrainingDataWhenTheRunHasNone) {
  const SmallRun small;
  save_plain(small, small.run() / "weights.safetensors");
  EXPECT_EQ(load_trained({small.run()}).classes, small.classes());
}

TEST(TrainedTest, TakesTheBestGoodCheckpointWhileThereIsNoResult) {
  const SmallRun small;
  save_plain(small, small.root() / "plain.safetensors");
  const weights::SafetensorsFile plain(small.root() / "plain.safetensors");
  run::CheckpointStore store(run::RunPaths{small.run()}.checkpoints());
  for (const int64_t step : {1, 2, 3}) {
    run::Save save;
    save.step = step;
    save.keep = 3;
    save.best = step == 2;
    save.state["classes"] = base::Json::array_of(std::vector<std::string>{"first", "second"});
    save.parts = {run::safetensors_part("weights.safetensors", plain.tensors())};
    store.save(save);
  }
  std::filesystem::remove(small.run() / "weights.safetensors");
  Trained trained = load_trained({small.run()});
  EXPECT_THAT(trained.weights.string(), HasSubstr("step-00000002/weights.safetensors"));
  EXPECT_EQ(trained.classes, (std::vector<std::string>{"first", "second"}));
  base::write_file(trained.weights, "damaged");
  trained = load_trained({small.run()});
  EXPECT_THAT(trained.weights.string(), HasSubstr("step-00000003/weights.safetensors"));
  EXPECT_EQ(trained.notes.size(), 1U);
}

TEST(TrainedTest, PutsTogetherWeightsThatNodesWroteInPartitions) {
  const SmallRun small;
  const Trained expected = load_trained({small.run()});
  save_plain(small, small.root() / "plain.safetensors");
  const weights::SafetensorsFile plain(small.root() / "plain.safetensors");
  std::vector<weights::TensorView> whole, partitions;
  std::vector<run::CutTensor> cut;
  for (const auto& view : plain.tensors()) {
    const auto numel = static_cast<int64_t>(view.bytes.size() / sizeof(float));
    if (view.dtype != weights::Dtype::F32 || numel < 2) {
      whole.push_back(view);
      continue;
    }
    std::vector<int64_t> strides(view.shape.size(), 1);
    for (size_t dim = strides.size() - 1; dim > 0; --dim) strides[dim - 1] = strides[dim] * view.shape[dim];
    cut.push_back({run::cut_name("weights", view.name), view.shape, strides});
    partitions.push_back({run::partition_name(cut.back().name, 0), view.dtype, {1}, view.bytes.first(sizeof(float))});
    partitions.push_back(
        {run::partition_name(cut.back().name, 1), view.dtype, {numel - 1}, view.bytes.subspan(sizeof(float))});
  }
  run::Save save;
  save.step = 1;
  save.state["classes"] = base::Json::array_of(small.classes());
  run::describe_cut(save.state, cut, {"part-0000.safetensors"});
  save.parts = {run::safetensors_part("weights.safetensors", whole),
                run::safetensors_part("part-0000.safetensors", partitions)};
  run::CheckpointStore(run::RunPaths{small.run()}.checkpoints()).save(save);
  std::filesystem::remove(small.run() / "weights.safetensors");
  const Trained trained = load_trained({small.run()});
  EXPECT_THAT(trained.weights.string(), HasSubstr("step-00000001/weights.safetensors"));
  const auto parameters = trained.network.parameters(), others = expected.network.parameters();
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_TRUE(at::equal(parameters[i].tensor, others[i].tensor)) << others[i].name;
  }
}

TEST(TrainedTest, LoadsAWeightsFileBesideItsJob) {
  const SmallRun small;
  const Trained trained = load_trained({small.run() / "weights.safetensors"});
  EXPECT_TRUE(trained.run.empty());
  EXPECT_EQ(trained.classes, small.classes());
}

TEST(TrainedTest, OverridesTheJob) {
  const SmallRun small;
  EXPECT_EQ(load_trained({small.run(), {}, {"data.center_crop=1"}}).job.data.center_crop, 1);
}

TEST(TrainedTest, SaysWhatIsMissing) {
  const SmallRun small;
  EXPECT_THAT(complaint({small.run() / "nothing"}), HasSubstr("there is no such run folder or weights file"));
  std::filesystem::rename(small.run() / "weights.safetensors", small.root() / "alone.safetensors");
  EXPECT_THAT(complaint({small.root() / "alone.safetensors"}), HasSubstr("--job JOB.json"));
  EXPECT_THAT(complaint({small.run()}), HasSubstr("no weights yet, and no good checkpoint"));
}

TEST(TrainedTest, RefusesWeightsOfAnotherClassCount) {
  const SmallRun small;
  save_plain(small, small.run() / "weights.safetensors");
  base::make_folders(small.root() / "data" / "third");
  base::write_file(small.root() / "data" / "third" / "0.jpg", "");
  EXPECT_THAT(complaint({small.run()}), HasSubstr("none of its tensors fits linear"));
}

}  // namespace
}  // namespace lockstep::training
