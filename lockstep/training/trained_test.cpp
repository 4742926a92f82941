// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/trained.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/weights.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/saved_tensors.h"
#include "lockstep/training/small_run.h"

namespace lockstep::training {
namespace {

using base::text;
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

// A finished run whose third checkpoint is the last and whose second is the best.
void add_checkpoints(const SmallRun& small, bool with_best) {
  save_plain(small, small.root() / "plain.safetensors");
  const weights::SafetensorsFile plain(small.root() / "plain.safetensors");
  run::CheckpointStore store(run::RunPaths{small.run()}.checkpoints());
  for (const int64_t step : {1, 2, 3}) {
    run::Save save;
    save.step = step;
    save.keep = 3;
    save.best = with_best && step == 2;
    save.state["classes"] = base::Json::array_of(small.classes());
    save.state["evaluation"] =
        task::ScoreSummary{{"top1", 0.5, true, text("top-1 of step ", step)}, base::Json::object()}.to_json();
    save.parts = {run::safetensors_part("weights.safetensors", plain.tensors())};
    store.save(save);
  }
}

TEST(TrainedTest, TakesTheBestWeightsOfARunThatWasValidatedAndSaysSo) {
  const SmallRun small;
  add_checkpoints(small, true);
  const Trained best = load_trained({small.run()});
  EXPECT_EQ(best.which, "best, step 2, top-1 of step 2");
  EXPECT_THAT(best.weights.string(), HasSubstr("step-00000002/weights.safetensors"));
  const Trained last = load_trained({.source = small.run(), .which = "last"});
  EXPECT_EQ(last.which, "last, step 3");
  EXPECT_EQ(last.weights, small.run() / "weights.safetensors");
  EXPECT_EQ(load_trained({.source = small.run(), .which = "1"}).which, "checkpoint, step 1, top-1 of step 1");
  EXPECT_EQ(load_trained({.source = small.run(), .which = "3"}).weights, small.run() / "weights.safetensors");
  EXPECT_THAT(complaint({.source = small.run(), .which = "7"}), HasSubstr("no good checkpoint of step 7"));
  EXPECT_THAT(complaint({.source = small.run(), .which = "worst"}), HasSubstr("best, last, or a step"));
}

TEST(TrainedTest, TakesTheLastWeightsOfARunWithoutValidation) {
  const SmallRun small;
  add_checkpoints(small, false);
  EXPECT_EQ(load_trained({small.run()}).which, "last, step 3");
  EXPECT_THAT(complaint({.source = small.run(), .which = "best"}), HasSubstr("--weights last"));
}

TEST(TrainedTest, AJobThatNormalisesOtherwiseThanItsWeightsIsWarnedOf) {
  const SmallRun small;
  const Trained plain = load_trained({small.run()});
  model::save_weights(
      plain.network, small.root() / "own.safetensors",
      {{"image_size", "16"}, {"mean", "[0.5, 0.5, 0.5]"}, {"std", "[0.25, 0.25, 0.25]"}, {"center_crop", "1"}});
  const Trained other = load_trained({small.root() / "own.safetensors", small.run() / "job.json"});
  ASSERT_EQ(other.notes.size(), 2U);  // job.json has every key: the defaults
  EXPECT_THAT(other.notes[0], HasSubstr("warning: data.mean is [0.485,0.456,0.406], but"));
  base::write_file(small.root() / "short.json", R"({"name": "short", "data": {"train": "synthetic", "samples": 4},
      "model": {"name": "linear", "classes": 2}, "training": {"steps": 1}})");
  const Trained taken = load_trained({small.root() / "own.safetensors", small.root() / "short.json"});
  EXPECT_EQ(taken.job.data.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(taken.job.data.center_crop, 1);
  EXPECT_TRUE(taken.notes.empty());
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
