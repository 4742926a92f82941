// SPDX-License-Identifier: Apache-2.0
// The loader over shards: what it asks of the file system, exact resume, damaged bytes, memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/extents.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/store.h"
#include "lockstep/shards/shard_set.h"

// The program's own definitions stand before the C library's: every look-up by name in this process passes here.
namespace {
std::atomic<int64_t> g_num_path_calls = 0;
}
// NOLINTBEGIN: the C library's names and types
extern "C" int open(const char* path, int flags, ...) {
  ++g_num_path_calls;
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>((flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0);
  va_end(rest);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
extern "C" int stat(const char* path, struct stat* into) noexcept {
  ++g_num_path_calls;
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, into, 0));
}
// NOLINTEND

namespace lockstep::loader {
namespace {

image::Image shard_image(uint64_t index, int64_t side) {
  image::Image image(side + static_cast<int64_t>(index % 7), side);
  base::Random random(6, 0, index);
  for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits() % 64 + 3 * (index % 60));
  return image;
}

// 40 images of two classes, the same in two shards and in a folder.
class ShardLoaderTest : public testing::Test {
 protected:
  ShardLoaderTest() {
    shards::ShardList list{"test", {"a", "b"}, {}};
    for (uint64_t shard = 0; shard < 2; ++shard) {
      shards::ShardWriter writer(folder_.path(), base::text("shard-00000", shard));
      for (uint64_t i = 20 * shard; i < 20 * shard + 20; ++i) {
        const std::string jpeg = image::encode_jpeg(shard_image(i, 40), 90), label = base::text(i % 2);
        writer.add({base::text("s", 100 + i), static_cast<int32_t>(i % 2)}, {{"jpg", jpeg}, {"cls", label}});
        const base::Path file = folder_.path() / "files" / (i % 2 == 0 ? "a" : "b") / base::text(100 + i, ".jpg");
        base::make_folders(file.parent_path());
        base::write_file(file, jpeg);
      }
      list.shards.push_back(writer.finish());
    }
    shards::write_shard_list(folder_.path(), list);
    collection_ = scan_folder(folder_.path().string());
    options_.data.image_size = 16;
    options_.global_batch = 9;
    options_.threads = 2;
  }

  static int64_t path_calls_of_an_epoch(const Collection& collection, const LoaderOptions& options) {
    const auto loader = make_loader(collection, options, {1, 0, 0});
    (void)loader->next();
    const int64_t before = g_num_path_calls;
    for (int64_t i = 0; i < loader->steps_per_epoch(); ++i) (void)loader->next();
    return g_num_path_calls - before;
  }

  // (id, pixels) of all ranks, from `state` on, which is moved along.
  using Row = std::pair<int64_t, std::vector<float>>;
  std::vector<Row> rows(int64_t num_ranks, int64_t num_batches, run::LoaderState& state) {
    std::vector<std::unique_ptr<Loader>> ranks;
    LoaderOptions options = options_;
    options.num_ranks = num_ranks;
    for (options.rank = 0; options.rank < num_ranks; ++options.rank) {
      ranks.push_back(make_loader(collection_, options, state));
    }
    std::vector<Row> all;
    for (int64_t i = 0; i < num_batches; ++i) {
      for (const auto& rank : ranks) {
        const Batch batch = rank->next();
        for (int64_t row = 0; row < batch.size(); ++row) {
          const auto* pixels = batch.field("image").values<float>(row);
          all.emplace_back(batch.sample_ids[static_cast<size_t>(row)], std::vector(pixels, pixels + 16 * 16 * 3));
        }
      }
    }
    state = run::LoaderState::from_json(ranks.back()->state().to_json());
    return all;
  }

  base::TemporaryFolder folder_;
  Collection collection_;
  LoaderOptions options_;
};

TEST_F(ShardLoaderTest, AsksTheFileSystemNothingAboutAnyImage) {
  EXPECT_EQ(path_calls_of_an_epoch(collection_, options_), 0);
  const Collection files = scan_folder((folder_.path() / "files").string());
  const int64_t before = g_num_path_calls;  // a loader reads ahead: from before it was made
  (void)path_calls_of_an_epoch(files, options_);
  EXPECT_GE(g_num_path_calls - before, 40) << "the counter does not count";
}

// The same for a full shuffle and for windows.
class ShardOrderTest : public ShardLoaderTest, public testing::WithParamInterface<spec::SampleOrder> {
 protected:
  ShardOrderTest() {
    options_.data.order = GetParam();
    options_.data.extent = 4096;  // about three images
    options_.data.window = 3;
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, ShardOrderTest, testing::Values(spec::SampleOrder::full, spec::SampleOrder::windows));

TEST_P(ShardOrderTest, TwoRanksThenThreeThenOneGiveTheUndisturbedBatches) {
  run::LoaderState undisturbed{1, 0, 0};
  const auto whole = rows(1, 15, undisturbed);  // three epochs of five batches
  run::LoaderState state{1, 0, 0};
  std::vector<Row> pieces;
  for (const auto& [num_ranks, num_batches] : {std::pair<int64_t, int64_t>{2, 3}, {3, 5}, {1, 7}}) {
    const auto piece = rows(num_ranks, num_batches, state);
    pieces.insert(pieces.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(pieces, whole);
  EXPECT_EQ(state, undisturbed);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {  // 0 lost, 0 repeated
    std::vector<int64_t> ids;
    for (int64_t i = 40 * epoch; i < 40 * epoch + 40; ++i) ids.push_back(pieces[static_cast<size_t>(i)].first);
    std::sort(ids.begin(), ids.end());
    for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], i);
  }
}

TEST_F(ShardLoaderTest, WindowsReadEveryExtentOnceAndHoldTheSameImages) {
  std::map<int64_t, std::vector<float>> images[2];
  for (const auto order : {spec::SampleOrder::full, spec::SampleOrder::windows}) {
    options_.data.order = order;
    options_.data.extent = 4096;
    options_.data.window = 4;
    run::LoaderState state{1, 0, 0};
    for (auto& [id, pixels] : rows(1, 5, state)) images[order == spec::SampleOrder::windows][id] = std::move(pixels);
  }
  EXPECT_EQ(images[0].size(), 40u);
  EXPECT_EQ(images[0], images[1]);  // a sample's augmentation does not know the order
  options_.use = Use::evaluate;
  const auto loader = make_loader(collection_, options_, {1, 0, 0});
  while (loader->next().global_size > 0) {
  }
  const auto store = open_store(collection_);
  const Extents extents(*store, 40, 4096);
  EXPECT_EQ(loader->reads().reads, static_cast<int64_t>(extents.all().size()));
}

TEST_P(ShardOrderTest, NamesTheSampleWithAFlippedBitOrSkipsAndCountsIt) {
  const Location where = open_store(collection_)->locate(27);
  const std::string path = open_store(collection_)->path(where.file);
  std::string bytes = base::read_file(path);
  bytes[static_cast<size_t>(where.offset + where.size / 2)] ^= 1;
  base::write_file(path, bytes);
  const auto run_epoch = [&] {
    const auto loader = make_loader(collection_, options_, {1, 0, 0});
    for (int64_t i = 0; i < loader->steps_per_epoch(); ++i) (void)loader->next();
    return loader->bad_samples();
  };
  try {
    run_epoch();
    FAIL() << "the flipped bit was not noticed";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("s127"));
    EXPECT_THAT(error.message(), testing::HasSubstr("CRC-32C"));
  }
  options_.data.on_bad_sample = spec::OnBadSample::skip;
  const auto bad = run_epoch();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].id, 27);
}

TEST_F(ShardLoaderTest, EveryKindOfPixelsShowsTheSameImage) {
  options_.data.augment = spec::Augment::strong;  // colour, hue and erasing take another way than a plain crop
  const auto first_batch = [&](spec::Pixels pixels) {
    options_.data.pixels = pixels;
    return make_loader(collection_, options_, {1, 0, 0})->next();
  };
  for (int i = 0; i < 2; ++i, options_.data.augment = spec::Augment::standard) {
    const Batch of_floats = first_batch(spec::Pixels::fp32), of_halves = first_batch(spec::Pixels::bf16),
                of_bytes = first_batch(spec::Pixels::uint8);
    const auto* floats = of_floats.field("image").values<float>();
    const auto* halves = of_halves.field("image").values<uint16_t>();
    const auto* bytes = of_bytes.field("image").values<uint8_t>();
    constexpr size_t kValues = 9u * 16 * 16 * 3;
    ASSERT_EQ(of_floats.field("image").bytes.size(), kValues * 4);
    ASSERT_EQ(of_halves.field("image").bytes.size(), kValues * 2);
    ASSERT_EQ(of_bytes.field("image").bytes.size(), kValues);
    EXPECT_EQ(of_floats.sample_ids, of_bytes.sample_ids);
    for (size_t k = 0; k < kValues; ++k) {
      const auto mean = static_cast<float>(options_.data.mean[k % 3]),
                 deviation = static_cast<float>(options_.data.std[k % 3]);
      ASSERT_NEAR(floats[k] * deviation + mean, static_cast<float>(bytes[k]) / 255, 0.502 / 255);
      ASSERT_NEAR(floats[k], std::bit_cast<float>(uint32_t{halves[k]} << 16), std::abs(floats[k]) / 256);
    }
  }
}

int64_t resident_bytes() {
  const std::string statm = base::read_file("/proc/self/statm");
  return std::stoll(base::split(statm, ' ')[1]) * sysconf(_SC_PAGESIZE);
}

TEST_F(ShardLoaderTest, TenEpochsStayWithinTheByteBudget) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps what was freed: 10 to 12 MB of it in these epochs";
#endif
  options_.data.image_size = 128;
  options_.global_batch = 8;
  options_.data.memory = 8 << 20;  // a batch is 1.5 MiB, an epoch has five of them
  const auto loader = make_loader(collection_, options_, {1, 0, 0});
  for (int i = 0; i < 5; ++i) loader->recycle(loader->next());
  const int64_t before = resident_bytes();
  for (int64_t i = 0; i < 10 * loader->steps_per_epoch(); ++i) loader->recycle(loader->next());
  EXPECT_LT(resident_bytes() - before, options_.data.memory);
}

}  // namespace
}  // namespace lockstep::loader
