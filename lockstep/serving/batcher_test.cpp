// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/batcher.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <string>

namespace lockstep::serving {
namespace {

using std::chrono::microseconds;

// Notes what becomes of it.
class Noted : public Work {
 public:
  explicit Noted(int64_t rows = 1, int kind = 0) : rows_(rows), kind_(kind) {}
  int64_t rows() const override { return rows_; }
  Kind kind() const override { return {nullptr, kind_}; }
  void prepare() override {
    if (gate) gate->wait();
    if (breaks) throw std::runtime_error("no image");
  }
  void finish() override { done.count_down(); }
  void fail(const std::exception& why) override {
    failed = why.what();
    done.count_down();
  }
  bool is_late() const override { return late; }

  std::latch* gate = nullptr;
  bool breaks = false;
  bool late = false;
  std::string failed;
  std::latch done{1};

 private:
  int64_t rows_;
  int kind_;
};

struct Sizes {
  std::mutex mutex;
  std::vector<size_t> sizes;

  Batcher::Run run() {
    return [this](const auto& batch) {
      const std::lock_guard lock(mutex);
      sizes.push_back(batch.size());
    };
  }
};

constexpr microseconds kLong{10'000'000};  // nothing may wait that long

TEST(BatcherTest, ALoneRequestWaitsForNobody) {
  Sizes seen;
  Batcher batcher({.budget = kLong}, seen.run());
  const auto work = std::make_shared<Noted>();
  ASSERT_TRUE(batcher.submit(work));
  work->done.wait();
  EXPECT_EQ(seen.sizes, std::vector<size_t>{1});
}

TEST(BatcherTest, WhatIsReadyWaitsForWhatIsBeingPrepared) {
  Sizes seen;
  Batcher batcher({.budget = kLong, .threads = 2}, seen.run());
  std::latch gate(1);
  const auto slow = std::make_shared<Noted>();
  slow->gate = &gate;
  const auto quick = std::make_shared<Noted>();
  ASSERT_TRUE(batcher.submit(slow) && batcher.submit(quick));
  gate.count_down();
  slow->done.wait();
  quick->done.wait();
  EXPECT_EQ(seen.sizes, std::vector<size_t>{2});
}

TEST(BatcherTest, NobodyWaitsBeyondTheBudget) {
  Sizes seen;
  Batcher batcher({.budget = microseconds(0), .threads = 2}, seen.run());
  std::latch gate(1);
  const auto slow = std::make_shared<Noted>();
  slow->gate = &gate;
  const auto quick = std::make_shared<Noted>();
  ASSERT_TRUE(batcher.submit(slow) && batcher.submit(quick));
  quick->done.wait();
  gate.count_down();
  slow->done.wait();
  EXPECT_EQ(seen.sizes, (std::vector<size_t>{1, 1}));
}

// Two passes at once: each waits in the network until the other is there too.
TEST(BatcherTest, SeveralRunnersShareOutWhatIsReady) {
  std::latch both(2);
  Batcher batcher({.budget = kLong, .runners = 2}, [&](const auto& batch) {
    EXPECT_EQ(batch.size(), 1U);
    both.arrive_and_wait();
  });
  const auto first = std::make_shared<Noted>();
  const auto second = std::make_shared<Noted>();
  ASSERT_TRUE(batcher.submit(first) && batcher.submit(second));
  first->done.wait();
  second->done.wait();
  EXPECT_EQ(batcher.counts().batches, 2);
}

TEST(BatcherTest, BatchesHaveOneKindAndNoMoreRowsThanAllowed) {
  Sizes seen;
  std::vector<std::shared_ptr<Noted>> works;
  std::latch gate(1);
  {
    Batcher batcher({.max_rows = 4, .budget = kLong}, seen.run());
    for (const auto& [rows, kind] : {std::pair<int64_t, int>{1, 0}, {3, 0}, {1, 1}, {2, 0}, {9, 0}, {1, 1}}) {
      works.push_back(std::make_shared<Noted>(rows, kind));
    }
    works.back()->gate = &gate;  // the one thread is held until all of them are there
    ASSERT_TRUE(batcher.submit(works.back()));
    for (size_t i = 0; i + 1 < works.size(); ++i) ASSERT_TRUE(batcher.submit(works[i]));
    gate.count_down();
    for (const auto& work : works) work->done.wait();
    EXPECT_EQ(batcher.counts().rows, 17);
  }
  // Kind 1 first, as the oldest; of kind 0: 1 + 3, 2, and 9 that fit nowhere.
  size_t all = 0;
  for (const size_t size : seen.sizes) {
    EXPECT_LE(size, 2U);
    all += size;
  }
  EXPECT_EQ(all, 6U);
}

TEST(BatcherTest, RefusesWhatDoesNotFit) {
  Sizes seen;
  Batcher batcher({.max_works = 2}, seen.run());
  std::latch gate(1);
  const auto held = std::make_shared<Noted>();
  held->gate = &gate;
  const auto second = std::make_shared<Noted>();
  ASSERT_TRUE(batcher.submit(held) && batcher.submit(second));
  EXPECT_FALSE(batcher.submit(std::make_shared<Noted>()));
  EXPECT_EQ(batcher.counts().refused, 1);
  gate.count_down();
  held->done.wait();
  second->done.wait();
}

TEST(BatcherTest, WhoeverHasAnAnswerFindsRoom) {
  Sizes seen;
  Batcher batcher({.max_works = 1}, seen.run());
  for (int i = 0; i < 200; ++i) {
    const auto work = std::make_shared<Noted>();
    work->breaks = i % 2 == 1;
    ASSERT_TRUE(batcher.submit(work)) << i;
    work->done.wait();
  }
}

TEST(BatcherTest, BadAndLateWorkFailsAlone) {
  Sizes seen;
  Batcher batcher({}, seen.run());
  const auto bad = std::make_shared<Noted>();
  bad->breaks = true;
  const auto late = std::make_shared<Noted>();
  late->late = true;
  const auto good = std::make_shared<Noted>();
  for (const auto& work : {bad, late, good}) {
    ASSERT_TRUE(batcher.submit(work));
    work->done.wait();
  }
  EXPECT_EQ(bad->failed, "no image");
  EXPECT_NE(late->failed, "");
  EXPECT_EQ(good->failed, "");
}

TEST(BatcherTest, APassThatFailsEndsNothingElse) {
  int passes = 0;
  Batcher batcher({}, [&](const auto&) {
    if (passes++ == 0) throw std::runtime_error("out of memory");
  });
  const auto first = std::make_shared<Noted>();
  const auto second = std::make_shared<Noted>();
  for (const auto& work : {first, second}) {
    ASSERT_TRUE(batcher.submit(work));
    work->done.wait();
  }
  EXPECT_EQ(first->failed, "out of memory");
  EXPECT_EQ(second->failed, "");
}

TEST(BatcherTest, FinishesWhatItAcceptedBeforeItEnds) {
  Sizes seen;
  std::vector<std::shared_ptr<Noted>> works;
  {
    Batcher batcher({}, seen.run());
    for (int i = 0; i < 20; ++i) {
      works.push_back(std::make_shared<Noted>());
      ASSERT_TRUE(batcher.submit(works.back()));
    }
  }
  for (const auto& work : works) EXPECT_TRUE(work->done.try_wait());
}

}  // namespace
}  // namespace lockstep::serving
