// SPDX-License-Identifier: Apache-2.0
// Samples without an image: shards of sentences, and lists of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/loader/collections.h"
#include "lockstep/loader/data_check.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/store.h"
#include "lockstep/shards/small_shards.h"
#include "lockstep/task/text.h"

namespace lockstep::loader {
namespace {

using testing::HasSubstr;

class SentencesTest : public testing::Test {
 protected:
  SentencesTest() {
    shards::ShardWriter writer(folder_.path(), "shard-000000");
    for (size_t i = 0; i < sentences_.size(); ++i) {
      writer.add({base::text("0000", i, "-list"), static_cast<int32_t>(i % 2), 7U + i},
                 {{"txt", sentences_[i]}, {"cls", i % 2 == 0 ? "0" : "1"}});
    }
    shards::write_shard_list(folder_.path(), {"train", {"caption", "other"}, {writer.finish()}});
    job_.task = spec::Task::text;
    job_.text.slots = 16;
    job_.data.train = folder_.path().string();
  }

  LoaderOptions options(Use use) const {
    LoaderOptions options;
    options.data = job_.data;
    options.task = task::make_task(job_, {"caption", "other"});
    options.use = use;
    options.global_batch = 4;
    options.threads = 2;
    options.data.on_bad_sample = spec::OnBadSample::skip;
    return options;
  }

  base::TemporaryFolder folder_;
  std::vector<std::string> sentences_ = {"a disk", "who sold it?", "a star, then a disk", "no"};
  spec::Job job_;
};

TEST_F(SentencesTest, ShardsOfSentencesAreReadWithTheirLabels) {
  const Collection all = open_collections(job_).train;
  EXPECT_EQ(all.main_member, "txt");
  EXPECT_EQ(all.classes, (std::vector<std::string>{"caption", "other"}));
  const auto store = open_store(all);
  std::vector<std::byte> memory;
  for (int64_t i = 0; i < 4; ++i) {
    const auto bytes = store->split(i, store->read(i, memory)).front();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              sentences_[static_cast<size_t>(i)]);
    EXPECT_EQ(all.samples[static_cast<size_t>(i)].label, i % 2);
  }
  EXPECT_THAT(store->name(1), HasSubstr("shard-000000.tar/00001-list.txt"));
  EXPECT_EQ(store->largest_file(), 19);
  const auto loader = make_loader(all, options(Use::evaluate), {});
  const Batch batch = loader->next();
  EXPECT_EQ(batch.size(), 4);
  EXPECT_EQ(batch.annotations[1], R"({"text":"who sold it?"})");
  EXPECT_TRUE(find_bad_samples(all, *task::make_task(job_, all.classes), 1, nullptr).empty());
}

TEST_F(SentencesTest, AListIsReadAndWhatIsNoSentenceIsNamed) {
  const Collection list = sentence_collection({"list.txt:1", "list.txt:2"}, {"a disk", " "});
  const auto loader = make_loader(list, options(Use::predict), {});
  const Batch batch = loader->next();
  EXPECT_EQ(batch.was_read[0], 1);
  EXPECT_EQ(batch.was_read[1], 0);
  ASSERT_EQ(loader->bad_samples().size(), 1U);
  EXPECT_EQ(loader->bad_samples()[0].path, "list.txt:2");
  EXPECT_THAT(loader->bad_samples()[0].reason, HasSubstr("the sentence is empty"));
  EXPECT_EQ(open_store(list)->path(1), "list.txt");
}

TEST_F(SentencesTest, ImagesAreNoSentencesAndSentencesNoImages) {
  const auto complaint = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  const shards::SmallShards images;
  EXPECT_THAT(complaint([&] { scan_members(images.folder.path().string(), "txt"); }), HasSubstr("has no member 'txt'"));
  EXPECT_THAT(complaint([&] { scan_images(images.folder.path().string(), "txt"); }), HasSubstr("has no member 'txt'"));
  EXPECT_THAT(complaint([&] { scan_folder(folder_.path().string()); }), HasSubstr("the sample has no image"));
  EXPECT_THAT(complaint([&] { scan_members("/tmp", "txt"); }), HasSubstr("/tmp: no shards of sentences"));
}

}  // namespace
}  // namespace lockstep::loader
