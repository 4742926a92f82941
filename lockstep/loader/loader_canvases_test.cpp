// SPDX-License-Identifier: Apache-2.0
// Batches of several sizes (instances.canvases): grouped by shape, each image once an epoch, on any ranks, after
// resumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/loader.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/task/task.h"

namespace lockstep::loader {
namespace {

class CanvasLoaderTest : public testing::Test {
 protected:
  CanvasLoaderTest() {
    shards::ShardWriter writer(folder_.path(), "shard-000000");
    for (int64_t i = 0; i < 30; ++i) {  // two lying images, then one that stands
      const int64_t width = i % 3 < 2 ? 60 : 40, height = 100 - width;
      image::Image image(width, height);
      for (size_t k = 0; k < image.pixels.size(); ++k)
        image.pixels[k] = static_cast<uint8_t>(k * 5 + static_cast<size_t>(i));
      const std::string json = base::text(R"({"width": )", width, R"(, "height": )", height,
                                          R"(, "objects": [{"label": 0, "bbox": [5, 5, 20, 20]})",
                                          i == 7 ? R"(, {"label": 9, "bbox": [1, 1, 9, 9]}]})" : "]}");
      writer.add({base::text("s", 100 + i), shards::kNoLabel}, {{"png", image::encode_png(image)}, {"json", json}});
    }
    shards::ShardList list{"test", {"cat"}, {}};
    list.shards.push_back(writer.finish());
    shards::write_shard_list(folder_.path(), list);
    collection_ = scan_images(folder_.path().string());
    spec::Job job;
    job.task = spec::Task::instances;
    job.model.name = "fasterrcnn_resnet18_fpn";
    job.data.image_size = 96;
    job.instances.masks = false;
    job.instances.slots = 2;
    job.instances.min_size = 64;
    job.instances.max_size = 96;
    job.instances.canvases = {"64x96", "96x64"};
    options_.data = job.data;
    options_.task = task::make_task(job, {"cat"});
    options_.global_batch = 4;
    options_.threads = 2;
  }

  struct Seen {
    std::vector<int64_t> ids;
    std::vector<int64_t> shape;  // of the images
    bool operator==(const Seen&) const = default;
  };
  // The next batches over all ranks, from `state` on, which is moved along.
  std::vector<Seen> batches(int64_t num_ranks, int64_t count, run::LoaderState& state) {
    LoaderOptions options = options_;
    options.num_ranks = num_ranks;
    std::vector<std::unique_ptr<Loader>> ranks;
    for (options.rank = 0; options.rank < num_ranks; ++options.rank)
      ranks.push_back(make_loader(collection_, options, state));
    std::vector<Seen> all(static_cast<size_t>(count));
    for (Seen& one : all) {
      for (const auto& rank : ranks) {
        const Batch batch = rank->next();
        one.ids.insert(one.ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
        const auto& image = batch.field("image");
        EXPECT_TRUE(one.shape.empty() || one.shape == image.field.shape) << "ranks see one size";
        one.shape = image.field.shape;
        EXPECT_EQ(static_cast<int64_t>(image.bytes.size()), batch.size() * image.field.bytes());
      }
    }
    state = run::LoaderState::from_json(ranks.back()->state().to_json());
    return all;
  }

  base::TemporaryFolder folder_;
  Collection collection_;
  LoaderOptions options_;
};

TEST_F(CanvasLoaderTest, BatchesHoldOneShapeAndAnEpochEachImage) {
  run::LoaderState state{1, 0, 0};
  const std::vector<Seen> epoch = batches(1, 8, state);
  std::set<int64_t> ids;
  std::map<int64_t, int64_t> lying;  // batches by the width of their canvas
  for (const Seen& batch : epoch) {
    ids.insert(batch.ids.begin(), batch.ids.end());
    if (batch.shape == std::vector<int64_t>{3, 96, 96}) continue;
    ++lying[batch.shape[2]];
    for (const int64_t id : batch.ids) EXPECT_EQ(id % 3 < 2, batch.shape[2] == 96) << id;
  }
  EXPECT_EQ(ids.size(), 30U);
  EXPECT_EQ(epoch.front().shape, (std::vector<int64_t>{3, 96, 96})) << "the largest first";
  EXPECT_EQ(epoch.back().ids.size(), 2U);
  EXPECT_GE(lying[96], 4);  // of 5 whole ones
  EXPECT_GE(lying[64], 1);  // of 2
}

TEST_F(CanvasLoaderTest, AreTheSameOnAnyRanksAndAfterAResume) {
  run::LoaderState straight{1, 0, 0}, broken{1, 0, 0};
  const std::vector<Seen> all = batches(1, 12, straight);
  std::vector<Seen> parts = batches(3, 5, broken);
  for (const Seen& more : batches(2, 7, broken)) parts.push_back(more);
  EXPECT_EQ(parts, all);
  EXPECT_EQ(broken, straight);
}

TEST_F(CanvasLoaderTest, TellsWhatIsLeftOutOfASampleThatIsUsed) {
  options_.use = Use::evaluate;
  const auto loader = make_loader(collection_, options_, {1, 0, 0});
  while (loader->next().global_size > 0) {
  }
  EXPECT_TRUE(loader->bad_samples().empty());
  ASSERT_EQ(loader->left_out().size(), 1U);
  EXPECT_EQ(loader->left_out()[0].id, 7);
  EXPECT_THAT(loader->left_out()[0].reason, testing::HasSubstr("object 1: its label 9"));
}

}  // namespace
}  // namespace lockstep::loader
