// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/snapshot.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::model {

TEST(SnapshotTest, TensorsComeBackWhateverTheirLayout) {
  const base::TemporaryFolder folder;
  const at::Tensor channels_last = at::arange(48, at::kFloat).view({2, 3, 2, 4}).permute({0, 3, 1, 2});
  const std::vector<Named> saved{{"a", channels_last}, {"steps", at::arange(1, at::kLong)}};
  write_tensors(folder.path() / "x.safetensors", saved, {});
  base::write_file(folder.path() / "state.json", "{}");
  const auto back = read_tensors(folder.path(), "x");
  ASSERT_EQ(back.size(), 2U);
  for (const auto& entry : back) {
    EXPECT_TRUE(at::equal(entry.tensor, entry.name == "a" ? channels_last : saved[1].tensor)) << entry.name;
  }
}

TEST(SnapshotTest, APartWritesTheBytesItAnnounces) {
  HostCopy copy;
  const auto part = copy.part("w", {{"a", at::arange(5, at::kFloat)}});
  int64_t bytes = 0;
  part.write([&](std::span<const std::byte> chunk) { bytes += static_cast<int64_t>(chunk.size()); });
  EXPECT_EQ(bytes, part.bytes);
}

TEST(SnapshotTest, TheHashOfTensorsKnowsNamesValuesAndTheRestButNoOrder) {
  const Named a{"a", at::arange(5, at::kFloat)};
  const Named b{"b", at::zeros({2, 3})};
  const std::string hash = tensors_sha256({a, b}, "more");
  EXPECT_EQ(tensors_sha256({b, a}, "more"), hash);
  EXPECT_NE(tensors_sha256({a, b}, ""), hash);
  EXPECT_NE(tensors_sha256({a, {"b", at::zeros({3, 2})}}, "more"), hash);
  EXPECT_NE(tensors_sha256({a, {"c", b.tensor}}, "more"), hash);
  EXPECT_NE(tensors_sha256({a, {"b", at::zeros({2, 3}).fill_(-0.0)}}, "more"), hash);
}

TEST(SnapshotTest, ACopyKeepsTheStateOfItsMoment) {
  HostCopy copy;
  const at::Tensor live = at::arange(6, at::kFloat).view({2, 3}).t();  // not contiguous
  const auto bytes_of = [](const run::CheckpointPart& part) {
    std::string all;
    part.write([&](std::span<const std::byte> chunk) {
      all.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
    });
    return all;
  };
  const auto first = copy.part("w", {{"a", live}});
  const std::string before = bytes_of(first);
  live.add_(1);
  EXPECT_EQ(bytes_of(first), before);
  EXPECT_NE(bytes_of(copy.part("w", {{"a", live}})), before);
}

TEST(SnapshotTest, AnotherShapeIsNamed) {
  const base::TemporaryFolder folder;
  write_tensors(folder.path() / "x.safetensors", {{"fc.weight", at::zeros({2, 3})}}, {});
  base::write_file(folder.path() / "state.json", "{}");
  try {
    restore_tensors(folder.path(), "x", {{"fc.weight", at::zeros({3, 3})}});
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_NE(error.message().find("'fc.weight'"), std::string::npos);
  }
}

}  // namespace lockstep::model
