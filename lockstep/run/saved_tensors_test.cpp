// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/saved_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/run/checkpoint.h"

namespace lockstep::run {
namespace {

weights::TensorView floats(const std::string& name, std::span<const float> values) {
  return {name, weights::Dtype::F32, {static_cast<int64_t>(values.size())}, std::as_bytes(values)};
}

std::vector<float> read_floats(const SavedTensors& saved, const std::string& name) {
  for (size_t i = 0; i < saved.entries().size(); ++i) {
    const auto& entry = saved.entries()[i];
    if (entry.name != name) continue;
    std::vector<float> values(*weights::tensor_bytes(entry.dtype, entry.shape) / sizeof(float));
    saved.read(i, std::as_writable_bytes(std::span(values)));
    return values;
  }
  return {};
}

// A matrix of 2 x 3 whose columns follow each other in memory, a vector, and a tensor that was never cut.
struct CutCheckpoint {
  std::vector<float> memory = {1, 4, 2, 5, 3, 6}, vector = {7, 8, 9}, whole = {10, 11};
  std::vector<CutTensor> cut = {{cut_name("weights", "matrix"), {2, 3}, {1, 2}},
                                {cut_name("optimizer", "momentum.vector"), {3}, {1}}};
  std::string first_part = "part-0000.safetensors";  // as state.json calls it

  base::Path save(const base::Path& folder, bool all_partitions = true) const {
    const std::span<const float> row(memory);
    std::vector<weights::TensorView> second = {floats(partition_name(cut[0].name, 4), row.subspan(4)),
                                               floats(partition_name(cut[1].name, 0), vector)};
    if (all_partitions) second.push_back(floats(partition_name(cut[0].name, 1), row.subspan(1, 3)));
    Save save;
    save.step = 3;
    save.state = base::Json::object();
    describe_cut(save.state, cut, {first_part, "part-0001.safetensors"});
    save.parts = {safetensors_part("weights.safetensors", {floats("whole", whole)}),
                  safetensors_part("optimizer.safetensors", {}),
                  safetensors_part("part-0000.safetensors", {floats(partition_name(cut[0].name, 0), row.first(1))}),
                  safetensors_part("part-0001.safetensors", second)};
    return CheckpointStore(folder).save(save);
  }
};

TEST(SavedTensorsTest, PartitionsOfSeveralFilesMakeWholeTensors) {
  const base::TemporaryFolder folder;
  const base::Path saved = CutCheckpoint().save(folder.path());
  const SavedTensors weights(saved, "weights"), optimizer(saved, "optimizer");
  ASSERT_EQ(weights.entries().size(), 2U);
  EXPECT_EQ(weights.entries()[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read_floats(weights, "whole"), (std::vector<float>{10, 11}));
  EXPECT_EQ(read_floats(weights, "matrix"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(optimizer.entries().size(), 1U);
  EXPECT_EQ(read_floats(optimizer, "momentum.vector"), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(base::read_json(saved / "manifest.json").at("format").as_int(), 2);
}

TEST(SavedTensorsTest, AMissingPartitionIsNamed) {
  const base::TemporaryFolder folder;
  const base::Path saved = CutCheckpoint().save(folder.path(), /*all_partitions=*/false);
  EXPECT_EQ(SavedTensors(saved, "optimizer").entries().size(), 1U);
  try {
    const SavedTensors weights(saved, "weights");
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_THAT(error.message(), testing::HasSubstr("'weights/matrix'"));
  }
}

// Whoever writes the checkpoint writes its checksums too.
TEST(SavedTensorsTest, AStateThatPointsOutsideOfItsTensorOrFolderIsRefused) {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> forged = {
      {{2, 3}, {1, 1 << 20}}, {{2, 3}, {1, -2}}, {{2, 3}, {1, 1}}, {{-2, -3}, {1, 2}}, {{2, 3}, {2}}};
  for (const auto& [shape, strides] : forged) {
    const base::TemporaryFolder folder;
    CutCheckpoint checkpoint;
    checkpoint.cut[0].shape = shape;
    checkpoint.cut[0].strides = strides;
    EXPECT_THROW(SavedTensors(checkpoint.save(folder.path()), "weights"), base::Error)
        << testing::PrintToString(strides);
  }
  const base::TemporaryFolder folder;
  CutCheckpoint checkpoint;
  checkpoint.first_part = "../part-0000.safetensors";
  const base::Path saved = checkpoint.save(folder.path());
  std::filesystem::copy(saved / "part-0000.safetensors", saved.parent_path() / "part-0000.safetensors");
  try {
    const SavedTensors weights(saved, "weights");
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("\"../part-0000.safetensors\" is no file of this checkpoint"));
  }
}

TEST(SavedTensorsTest, ACheckpointWithoutPartitionsIsItsFiles) {
  const base::TemporaryFolder folder;
  const std::vector<float> values = {1, 2};
  Save save;
  save.step = 1;
  save.state = base::Json::object();
  save.parts = {safetensors_part("weights.safetensors", {floats("a", values)})};
  const base::Path saved = CheckpointStore(folder.path()).save(save);
  EXPECT_EQ(read_floats(SavedTensors(saved, "weights"), "a"), values);
  EXPECT_THROW(SavedTensors(saved, "ema"), base::Error);
}

}  // namespace
}  // namespace lockstep::run
