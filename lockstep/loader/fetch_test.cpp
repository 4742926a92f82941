// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/file_memory.h"
#include "lockstep/shards/shard_set.h"

namespace lockstep::loader {
namespace {

struct Way {
  bool uring;
  bool whole_extents;
};

class FetcherTest : public testing::TestWithParam<Way> {
 protected:
  FetcherTest() {
    shards::ShardWriter writer(folder_.path(), "shard-000000");
    for (int i = 0; i < 50; ++i) {
      image::Image image(8 + i, 16);
      for (auto& value : image.pixels) value = static_cast<uint8_t>(5 * i);
      const std::string jpeg = image::encode_jpeg(image, 90);
      writer.add({base::text("s", 100 + i), i % 2}, {{"jpg", jpeg}, {"cls", i % 2 == 0 ? "0" : "1"}});
    }
    shards::write_shard_list(folder_.path(), {"test", {"a", "b"}, {writer.finish()}});
    collection_ = scan_folder(folder_.path().string());
    store_ = open_store(collection_);
    options_.uring = GetParam().uring;
    if (GetParam().whole_extents) {
      extents_ = Extents(*store_, 50, 5000);
      options_.extents = &extents_;
      options_.extent_budget = 12000;  // two of them
    }
  }

  std::vector<std::byte> expected(int64_t id) const {
    std::vector<std::byte> memory;
    store_->read(id, memory);
    return memory;
  }

  base::TemporaryFolder folder_;
  Collection collection_;
  std::unique_ptr<Store> store_;
  Extents extents_;
  Fetcher::Options options_;
};

// One sample as large as no memory.
class BoundlessStore final : public Store {
 public:
  std::string path(int64_t) const override { return ""; }
  Location locate(int64_t) const override { return {0, 0, int64_t{1} << 60}; }
  std::string name(int64_t) const override { return "boundless"; }
  std::span<const std::byte> read(int64_t, std::vector<std::byte>& memory) const override { return memory; }
  std::vector<std::span<const std::byte>> split(int64_t, std::span<const std::byte> bytes) const override {
    return {bytes};
  }
};

TEST_P(FetcherTest, TellsThoseWhoWaitThatThereIsNoMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process at such an allocation";
#endif
  const BoundlessStore store;
  const Extents extents(store, 1, 5000);
  if (GetParam().whole_extents) options_.extents = &extents;
  Fetcher fetcher(store, options_);
  fetcher.want(0, 0);
  EXPECT_THROW(fetcher.take(0), std::bad_alloc);
  fetcher.want(1, 0);
  EXPECT_THROW(fetcher.take(1), std::bad_alloc);  // and nobody waits for ever
}

TEST_P(FetcherTest, GivesEveryImageByItsTicket) {
  Fetcher fetcher(*store_, options_);
  for (int64_t ticket = 0; ticket < 200; ++ticket) fetcher.want(ticket, ticket * 7 % 50);
  for (int64_t ticket = 0; ticket < 200; ++ticket) {
    auto bytes = fetcher.take(ticket);
    EXPECT_EQ(bytes, expected(ticket * 7 % 50)) << ticket;
    fetcher.give_back(std::move(bytes));
  }
}

TEST_P(FetcherTest, ManyThreadsTakeWithinASmallBudget) {
  options_.byte_budget = 3000;  // about four images
  options_.depth = 2;
  Fetcher fetcher(*store_, options_);
  for (int64_t ticket = 0; ticket < 300; ++ticket) fetcher.want(ticket, ticket % 50);
  std::atomic<int64_t> next = 0, num_right = 0;
  {
    std::vector<std::jthread> takers;
    for (int i = 0; i < 4; ++i) {
      takers.emplace_back([&] {
        for (int64_t ticket = next++; ticket < 300; ticket = next++) {
          auto bytes = fetcher.take(ticket);
          num_right += bytes == expected(ticket % 50);
          fetcher.give_back(std::move(bytes));
        }
      });
    }
  }
  EXPECT_EQ(num_right, 300);
}

TEST_P(FetcherTest, ReadsNoFurtherThanTheBudget) {
  options_.byte_budget = FileMemory::room_of(std::ssize(expected(0))) + FileMemory::room_of(std::ssize(expected(1)));
  Fetcher fetcher(*store_, options_);
  for (int64_t ticket = 0; ticket < 3; ++ticket) fetcher.want(ticket, ticket);
  auto first = fetcher.take(0);
  auto second = fetcher.take(1);
  std::atomic<bool> there = false;
  std::jthread taker([&] {
    fetcher.give_back(fetcher.take(2));
    there = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(there);
  fetcher.give_back(std::move(first));
  fetcher.give_back(std::move(second));
  taker.join();
  EXPECT_TRUE(there);
}

TEST_P(FetcherTest, NamesASampleThatIsCutOffOrChanged) {
  const Location last = store_->locate(49), other = store_->locate(3);
  const std::string path = store_->path(0);
  std::string bytes = base::read_file(path);
  bytes[static_cast<size_t>(other.offset) + 40] ^= 4;
  bytes.resize(static_cast<size_t>(last.offset) + 10);
  base::write_file(path, bytes);
  store_ = open_store(collection_);
  Fetcher fetcher(*store_, options_);
  fetcher.want(0, 3);
  fetcher.want(1, 49);
  fetcher.want(2, 5);
  const auto complaint = [&](int64_t ticket) {
    try {
      (void)fetcher.take(ticket);
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  EXPECT_THAT(complaint(0), testing::AllOf(testing::HasSubstr("s103"), testing::HasSubstr("CRC-32C")));
  EXPECT_THAT(complaint(1), testing::AllOf(testing::HasSubstr("s149"), testing::HasSubstr("ends within it")));
  EXPECT_EQ(complaint(2), "none");
}

TEST_P(FetcherTest, AFailingFileSystemIsNotASamplesFault) {
  class FailingStore final : public Store {  // where each read fails
   public:
    explicit FailingStore(const Store& store) : store_(store) {}
    std::string path(int64_t file) const override { return store_.path(file); }
    Location locate(int64_t id) const override { return store_.locate(id); }
    std::string name(int64_t id) const override { return store_.name(id); }
    std::span<const std::byte> read(int64_t, std::vector<std::byte>& memory) const override { return memory; }
    std::vector<std::span<const std::byte>> split(int64_t, std::span<const std::byte> bytes) const override {
      return {bytes};
    }

   private:
    const Store& store_;
  };
  const FailingStore store(*store_);
  options_.depth = 2;
  Fetcher fetcher(store, options_);
  for (int64_t ticket = 0; ticket < 50; ++ticket) fetcher.want(ticket, ticket);
  for (int64_t ticket = 0; ticket < 50; ++ticket) {
    try {
      (void)fetcher.take(ticket);
      FAIL() << "a read that failed went through";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::machine);
      EXPECT_THAT(error.what(), testing::HasSubstr(base::text("s", 100 + ticket)));
    }
  }
}

TEST_P(FetcherTest, AbandonedItKeepsNobodyWaiting) {
  options_.byte_budget = 1;  // one image
  Fetcher fetcher(*store_, options_);
  for (int64_t ticket = 0; ticket < 3; ++ticket) fetcher.want(ticket, ticket);
  const auto first = fetcher.take(0);
  std::jthread taker([&] { EXPECT_TRUE(fetcher.take(2).empty()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fetcher.abandon();
}

TEST_P(FetcherTest, MayBeLeftWithReadsUnderWay) {
  for (int i = 0; i < 20; ++i) {
    Fetcher fetcher(*store_, options_);
    for (int64_t ticket = 0; ticket < 50; ++ticket) fetcher.want(ticket, ticket);
    if (i % 2 == 0) fetcher.give_back(fetcher.take(0));
  }
}

TEST_P(FetcherTest, CountsWhatItReads) {
  Fetcher fetcher(*store_, options_);
  int64_t bytes = 0;
  for (int64_t id = 0; id < 50; ++id) fetcher.want(id, id);
  for (int64_t id = 0; id < 50; ++id) {
    auto image = fetcher.take(id);
    bytes += static_cast<int64_t>(image.size());
    fetcher.give_back(std::move(image));
  }
  const bool whole = GetParam().whole_extents;
  EXPECT_EQ(fetcher.num_reads(), whole ? static_cast<int64_t>(extents_.all().size()) : 50);
  EXPECT_EQ(fetcher.bytes_read() > bytes, whole) << "with what lies between the images";
  EXPECT_GE(fetcher.bytes_read(), bytes);
}

INSTANTIATE_TEST_SUITE_P(Ways, FetcherTest,
                         testing::Values(Way{true, false}, Way{false, false}, Way{true, true}, Way{false, true}));

}  // namespace
}  // namespace lockstep::loader
