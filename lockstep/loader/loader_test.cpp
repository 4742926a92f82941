// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"

namespace lockstep::loader {
namespace {

using testing::HasSubstr;

std::string jpeg_of_noise(uint64_t index) {
  image::Image image(20 + static_cast<int64_t>(index % 5), 24);
  base::Random random(5, 0, index);
  for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits());
  return image::encode_jpeg(image, 90);
}

// 23 small images in three classes, on the disk: batches of 7, 7, 7 and 2.
class LoaderTest : public testing::Test {
 protected:
  LoaderTest() {
    for (int i = 0; i < 23; ++i) {
      put(base::text(i % 3 == 0   ? "a"
                     : i % 3 == 1 ? "b"
                                  : "c",
                     "/", 100 + i, ".jpg"),
          jpeg_of_noise(static_cast<uint64_t>(i)));
    }
    collection_ = scan_folder(folder_.path().string());
    options_.data.image_size = 8;
    options_.global_batch = 7;
    options_.threads = 2;
  }

  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }

  std::unique_ptr<Loader> loader(const run::LoaderState& from = {1, 0, 0}) const {
    return make_loader(collection_, options_, from);
  }

  static std::vector<float> pixels(const Batch& batch, int64_t row) {
    const auto& image = batch.field("image");
    return {image.values<float>(row), image.values<float>(row) + image.field.count()};
  }
  static int64_t label(const Batch& batch, size_t row) {
    return *batch.field("label").values<int64_t>(static_cast<int64_t>(row));
  }

  // The ids of the next `num_batches` global batches, put together from all ranks, and each sample's pixels.
  struct Seen {
    std::vector<int64_t> ids;
    std::vector<std::vector<float>> rows;
    bool operator==(const Seen&) const = default;
  };
  Seen see(int64_t num_ranks, const run::LoaderState& from, int64_t num_batches, run::LoaderState* after = nullptr) {
    std::vector<std::unique_ptr<Loader>> ranks;
    options_.num_ranks = num_ranks;
    for (options_.rank = 0; options_.rank < num_ranks; ++options_.rank) ranks.push_back(loader(from));
    options_.rank = 0;
    options_.num_ranks = 1;
    Seen seen;
    for (int64_t i = 0; i < num_batches; ++i) {
      for (auto& rank : ranks) {
        const Batch batch = rank->next();
        for (int64_t row = 0; row < batch.size(); ++row) {
          seen.ids.push_back(batch.sample_ids[static_cast<size_t>(row)]);
          seen.rows.push_back(pixels(batch, row));
        }
      }
    }
    if (after) *after = ranks.front()->state();
    return seen;
  }

  base::TemporaryFolder folder_;
  Collection collection_;
  LoaderOptions options_;
};

TEST_F(LoaderTest, TellsThatThereIsNoMemoryForABatch) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process at such an allocation";
#endif
  options_.data.image_size = int64_t{1} << 23;
  options_.data.memory = int64_t{1} << 60;
  const auto loaded = loader();
  EXPECT_THROW(loaded->next(), std::bad_alloc);
  EXPECT_THROW(loaded->next(), std::bad_alloc);
}

TEST_F(LoaderTest, GivesEverySampleOncePerEpochWithItsLabel) {
  const auto all = loader();
  EXPECT_EQ(all->steps_per_epoch(), 4);
  std::map<int64_t, int> counts;
  for (int64_t step = 0; step < 8; ++step) {
    const Batch batch = all->next();
    EXPECT_EQ(batch.step, step);
    EXPECT_EQ(batch.epoch, step / 4);
    EXPECT_EQ(batch.global_size, step % 4 == 3 ? 2 : 7);
    EXPECT_EQ(batch.size(), batch.global_size);
    EXPECT_EQ(batch.field("image").bytes.size(), static_cast<size_t>(batch.size() * 8 * 8 * 3) * sizeof(float));
    for (size_t i = 0; i < batch.sample_ids.size(); ++i) {
      ++counts[batch.sample_ids[i]];
      EXPECT_EQ(label(batch, i), collection_.samples[static_cast<size_t>(batch.sample_ids[i])].label);
    }
  }
  EXPECT_EQ(counts.size(), 23u);
  for (const auto& [id, count] : counts) EXPECT_EQ(count, 2) << id;
}

TEST_F(LoaderTest, PixelsDoNotDependOnRanksThreadsOrPrefetch) {
  const Seen one = see(1, {1, 0, 0}, 6);
  options_.threads = 5;
  options_.prefetch = 1;
  EXPECT_EQ(see(1, {1, 0, 0}, 6), one);
  for (const int64_t num_ranks : {2, 3, 4}) EXPECT_EQ(see(num_ranks, {1, 0, 0}, 6), one) << num_ranks;
}

TEST_F(LoaderTest, ResumesExactlyOnAnotherNumberOfRanks) {
  const Seen whole = see(1, {1, 0, 0}, 9);
  for (int64_t stopped_after = 1; stopped_after < 9; ++stopped_after) {
    run::LoaderState state;
    Seen both = see(4, {1, 0, 0}, stopped_after, &state);
    const Seen rest = see(3, run::LoaderState::from_json(state.to_json()), 9 - stopped_after);
    both.ids.insert(both.ids.end(), rest.ids.begin(), rest.ids.end());
    both.rows.insert(both.rows.end(), rest.rows.begin(), rest.rows.end());
    EXPECT_EQ(both, whole) << stopped_after;
  }
}

TEST_F(LoaderTest, StateCountsWhatWasGivenNotWhatWasPrefetched) {
  const auto all = loader();
  EXPECT_EQ(all->state(), (run::LoaderState{1, 0, 0}));
  (void)all->next();
  EXPECT_EQ(all->state(), (run::LoaderState{1, 0, 7}));
  for (int i = 0; i < 3; ++i) (void)all->next();
  EXPECT_EQ(all->state(), (run::LoaderState{1, 1, 0}));
}

TEST_F(LoaderTest, AugmentsAgainInEachEpochAndEvaluatesAlike) {
  const Seen train = see(1, {1, 0, 0}, 8);
  const auto row_of = [&](int64_t id, size_t from) {
    const auto at = std::find(train.ids.begin() + static_cast<int64_t>(from), train.ids.end(), id);
    return train.rows[static_cast<size_t>(at - train.ids.begin())];
  };
  EXPECT_NE(row_of(3, 0), row_of(3, 23));
  options_.augment = false;
  const Seen plain = see(1, {1, 0, 0}, 4);
  options_.use = Use::evaluate;
  const Seen ordered = see(1, {1, 0, 0}, 4);
  for (int64_t i = 0; i < 23; ++i) EXPECT_EQ(ordered.ids[static_cast<size_t>(i)], i);
  EXPECT_EQ(plain.rows[0], ordered.rows[static_cast<size_t>(plain.ids[0])]);
  EXPECT_EQ(ordered.rows[3], load_image(collection_.samples[3].path, options_.data));
}

TEST_F(LoaderTest, EvaluationEndsAfterOneEpochOnEveryRank) {
  options_.use = Use::evaluate;
  options_.num_ranks = 4;
  options_.rank = 0;  // has nothing of the last batch of two
  const auto all = loader();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all->next().global_size, 7);
  const Batch last = all->next();
  EXPECT_EQ(last.global_size, 2);
  EXPECT_EQ(last.size(), 0);
  EXPECT_EQ(all->next().global_size, 0);
  EXPECT_EQ(all->next().global_size, 0);
}

TEST_F(LoaderTest, KeepsAnnotationsForEvaluationAlone) {
  EXPECT_TRUE(loader()->next().annotations.empty());
  options_.use = Use::evaluate;
  EXPECT_THAT(loader()->next().annotations, testing::Each("")) << "a classifier has none";
  EXPECT_EQ(loader()->next().annotations.size(), 7U);
}

TEST_F(LoaderTest, ReadsNoMoreBatchesThanItIsToGive) {
  options_.use = Use::evaluate;
  options_.batches = 2;
  const auto some = loader::make_loader(collection_, options_, {options_.seed, 0, 7});
  EXPECT_EQ(some->next().sample_ids.front(), 7);
  EXPECT_EQ(some->next().sample_ids.front(), 14);
  EXPECT_EQ(some->next().global_size, 0);
  EXPECT_EQ(some->pipeline_seconds().samples, 14);
  options_.batches = 0;  // a rank of an evaluation may have none
  EXPECT_EQ(loader::make_loader(collection_, options_, {options_.seed, 0, 0})->next().global_size, 0);
}

TEST_F(LoaderTest, NamesAnUnreadableImageAndStops) {
  put("b/101.jpg", "this is text");
  const auto all = loader();
  try {
    for (int i = 0; i < 4; ++i) (void)all->next();
    FAIL() << "the damaged file was not noticed";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.message(), HasSubstr("b/101.jpg: neither JPEG, PNG, WebP nor TIFF"));
    EXPECT_THAT(error.fix(), HasSubstr("--set data.on_bad_sample=skip"));
  }
}

TEST_F(LoaderTest, SkipsBadSamplesByNameAndCountsEachOnce) {
  put("b/101.jpg", "");
  put("c/102.jpg", jpeg_of_noise(2).substr(0, 400));
  std::filesystem::remove(folder_.path() / "a/100.jpg");
  options_.data.on_bad_sample = spec::OnBadSample::skip;
  const auto all = loader();
  int64_t num_skipped = 0;
  for (int i = 0; i < 8; ++i) {
    const Batch batch = all->next();
    for (size_t row = 0; row < batch.sample_ids.size(); ++row) {
      const auto values = pixels(batch, static_cast<int64_t>(row));
      const bool zero = std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
      EXPECT_EQ(zero, batch.was_read[row] == 0);
      EXPECT_EQ(zero, label(batch, row) == -1);
      num_skipped += zero;
    }
  }
  EXPECT_EQ(num_skipped, 6);  // three in each of two epochs
  auto bad = all->bad_samples();
  ASSERT_EQ(bad.size(), 3u);
  std::sort(bad.begin(), bad.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  EXPECT_THAT(bad[0].reason, HasSubstr("there is no such file"));
  EXPECT_THAT(bad[1].reason, HasSubstr("the file is empty"));
  EXPECT_THAT(bad[1].path, HasSubstr("b/101.jpg"));
  EXPECT_THAT(bad[2].reason, HasSubstr("JPEG"));
}

TEST_F(LoaderTest, ReusesTheMemoryOfARecycledBatch) {
  const Seen fresh = see(1, {1, 0, 0}, 8);
  const auto all = loader();
  size_t at = 0;
  for (int i = 0; i < 8; ++i) {
    Batch batch = all->next();
    for (size_t row = 0; row < batch.sample_ids.size(); ++row, ++at) {
      EXPECT_EQ(fresh.rows[at], pixels(batch, static_cast<int64_t>(row)));
    }
    all->recycle(std::move(batch));
  }
}

TEST_F(LoaderTest, TellsHowLongEachPipelineStageTook) {
  const auto all = loader();
  for (int i = 0; i < 4; ++i) (void)all->next();
  const PipelineSeconds pipeline = all->pipeline_seconds();
  EXPECT_EQ(all->num_threads(), 2);
  EXPECT_GE(pipeline.samples, 23);
  for (const double seconds : {pipeline.read, pipeline.decode, pipeline.augment, pipeline.copy}) EXPECT_GT(seconds, 0);
}

TEST_F(LoaderTest, KeepsFewerBatchesWhenTheBudgetIsSmall) {
  const Seen plenty = see(1, {1, 0, 0}, 6);
  options_.data.memory = (3 << 20) + 2 * 7 * (192 * 4 + 8);  // two threads, files, two batches
  EXPECT_EQ(see(1, {1, 0, 0}, 6), plenty);
  const auto all = loader();
  (void)all->next();
  (void)all->next();
  EXPECT_LE(all->pipeline_seconds().samples, 21);  // two given, one under way
}

TEST_F(LoaderTest, RefusesWindowsOfFilesOfTheirOwn) {
  options_.data.order = spec::SampleOrder::windows;
  EXPECT_THROW(loader(), base::Error);
  options_.use = Use::evaluate;  // in order in any case
  EXPECT_EQ(loader()->next().size(), 7);
}

TEST_F(LoaderTest, RefusesOneClassForTrainingOnly) {
  collection_.classes = {"a"};
  EXPECT_THROW(loader(), base::Error);
  options_.use = Use::evaluate;
  EXPECT_EQ(loader()->next().size(), 7);
}

TEST_F(LoaderTest, RefusesAPositionOfAnotherSeedOrBeyondTheData) {
  EXPECT_THROW(loader({2, 0, 7}), base::Error);
  EXPECT_THROW(loader({1, 0, 24}), base::Error);
  EXPECT_EQ(loader({2, 0, 0})->state().seed, 1);  // nothing has begun: the job's seed holds
}

TEST_F(LoaderTest, IsLeftWithoutDecodingWhatIsPlanned) {
  const base::TemporaryFolder folder;
  const std::string large = image::encode_jpeg(image::Image(2000, 2000), 90);
  shards::ShardWriter writer(folder.path(), "shard-000000");
  for (int i = 0; i < 64; ++i) writer.add({base::text(i), i % 2}, {{"jpg", large}, {"cls", i % 2 == 0 ? "0" : "1"}});
  shards::write_shard_list(folder.path(), {"", {"a", "b"}, {writer.finish()}});
  const Collection collection = scan_folder(folder.path().string());
  LoaderOptions options;
  options.data.image_size = 32;
  options.global_batch = 64;
  options.prefetch = 32;
  options.threads = 2;
  const auto processor_seconds = [] {  // of all threads here: others may have the machine meanwhile
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double start = processor_seconds();
  for (int i = 0; i < 3; ++i) make_loader(collection, options, {1, 0, 0});  // 2,048 images each
  EXPECT_LT(processor_seconds() - start, 3);
}

// 200 kB that become 850 MB: the header says so before anything is decoded.
TEST_F(LoaderTest, AnImageThatDataMemoryDoesNotHoldIsABadSample) {
  std::string png = image::encode_png(image::Image(20, 20));
  for (const size_t at : {16U, 20U}) png.replace(at, 4, std::string("\0\0\x2A\xF8", 4));  // 11,000 pixels
  put("a/100.jpg", png);
  options_.data.memory = int64_t{30} << 20;
  options_.use = Use::evaluate;  // in order
  try {
    loader()->next();
    FAIL() << "must be refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), HasSubstr("a/100.jpg: decoding it takes 847 MB, data.memory leaves 2"));
  }
  options_.data.on_bad_sample = spec::OnBadSample::skip;
  const auto skipping = loader();
  EXPECT_EQ(skipping->next().was_read[0], 0);
  EXPECT_EQ(skipping->bad_samples().size(), 1U);
}

TEST_F(LoaderTest, MakesSyntheticImagesWithoutFiles) {
  collection_ = synthetic_collection(20, 4);
  const Seen one = see(1, {1, 0, 0}, 3);
  EXPECT_EQ(see(3, {1, 0, 0}, 3), one);
  EXPECT_NE(one.rows[0], one.rows[1]);
}

}  // namespace
}  // namespace lockstep::loader
