// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/node_part.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "lockstep/step/tiny_network.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::training {
namespace {

std::string content_of(const run::CheckpointPart& part) {
  std::string all;
  part.write(
      [&](std::span<const std::byte> chunk) { all.append(reinterpret_cast<const char*>(chunk.data()), chunk.size()); });
  return all;
}

// The files of four ranks on nodes of those names, after one step of momentum and no sharing of weights.
std::map<std::string, std::string> files_of(const std::vector<std::string>& nodes, int64_t num_nodes) {
  std::map<std::string, std::string> files;
  std::mutex mutex;
  comm::run_thread_ranks(static_cast<int64_t>(nodes.size()), [&](comm::Group& group) {
    auto network = step::tiny::network();
    step::StepOptions options;
    options.training.zero = 1;
    step::Step step(network, group, options);
    step.run(step::tiny::samples(2 * group.rank(), 2, 2 * group.size()), 0.05);
    NodePart node(group, nodes[static_cast<size_t>(group.rank())]);
    EXPECT_EQ(node.num_nodes(), num_nodes);
    for (int64_t time = 0; time < 2; ++time) {  // the memory of the first serves the second
      const auto part = node.take(step.cut_state());
      EXPECT_EQ(part.has_value(), node.writes());
      if (!part) continue;
      const std::lock_guard lock(mutex);
      const std::string bytes = content_of(*part);
      EXPECT_EQ(static_cast<int64_t>(bytes.size()), part->bytes);
      EXPECT_TRUE(files.emplace(part->name, bytes).first->second == bytes);
    }
  });
  return files;
}

int64_t elements(const std::map<std::string, std::string>& files) {
  int64_t count = 0;
  for (const auto& [name, bytes] : files) {
    const auto parsed = weights::parse_safetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), name);
    for (const auto& view : parsed.tensors) count += view.shape[0];
  }
  return count;
}

TEST(NodePartTest, ANodeHasOneFileWithThePartitionsOfAllItsRanks) {
  const auto apart = files_of({"a", "b", "c", "d"}, 4);
  const auto pairs = files_of({"a", "b", "a", "b"}, 2);
  const auto one = files_of({"a", "a", "a", "a"}, 1);
  EXPECT_EQ(apart.size(), 4U);
  EXPECT_EQ(pairs.size(), 2U);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one.begin()->first, "part-0000.safetensors");
  EXPECT_TRUE(pairs.contains("part-0001.safetensors"));
  int64_t parameters = 0;
  for (const auto& entry : step::tiny::network().parameters()) parameters += entry.tensor.numel();
  EXPECT_EQ(elements(apart), parameters);
  EXPECT_EQ(elements(pairs), parameters);
  EXPECT_EQ(elements(one), parameters);
}

}  // namespace
}  // namespace lockstep::training
