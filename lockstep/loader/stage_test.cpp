// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/stage.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/store.h"
#include "lockstep/shards/shard_set.h"

namespace lockstep::loader {
namespace {

template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 12000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Three shards of eight images, and a folder for the copies.
class StagingTest : public testing::Test {
 protected:
  StagingTest() {
    base::make_folders(shards_);
    base::make_folders(node_);
    shards::ShardList list{"test", {"a", "b"}, {}};
    for (int shard = 0; shard < 3; ++shard) {
      shards::ShardWriter writer(shards_, base::text("shard-00000", shard));
      for (int i = 0; i < 8; ++i) {
        image::Image image(24 + i, 24);
        for (size_t k = 0; k < image.pixels.size(); ++k) image.pixels[k] = static_cast<uint8_t>(k * 7 + 31 * i);
        const std::string jpeg = image::encode_jpeg(image, 90), label = base::text(i % 2);
        writer.add({base::text("s", 10 * shard + i), i % 2}, {{"jpg", jpeg}, {"cls", label}});
      }
      list.shards.push_back(writer.finish());
    }
    shards::write_shard_list(shards_, list);
    collection_ = scan_folder(shards_.string());
    plan_ = plan_stage(collection_, node_.string());
    plan_.in_memory = false;  // where temporary files live in memory: the rule for disks is tested here
  }

  base::Path copy(int shard) const { return plan_.folder / base::text("shard-00000", shard, ".tar"); }
  base::Path source(int shard) const { return shards_ / base::text("shard-00000", shard, ".tar"); }
  void expect_right_copies() const {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(base::read_file(copy(i)), base::read_file(source(i)));
    for (const auto& entry : std::filesystem::directory_iterator(plan_.folder)) {
      EXPECT_NE(entry.path().extension(), ".partial");
    }
  }
  static void flip_bit(const base::Path& file, size_t at) {
    std::string bytes = base::read_file(file);
    bytes[at] ^= 1;
    std::ofstream(file, std::ios::binary) << bytes;  // the same file, not a new one
  }

  base::TemporaryFolder folder_;
  base::Path shards_ = folder_.path() / "shards", node_ = folder_.path() / "node";
  Collection collection_;
  StagePlan plan_;
};

TEST_F(StagingTest, SaysHowMuchHowLongAndWhetherItFits) {
  EXPECT_EQ(plan_.bytes, static_cast<int64_t>(3 * std::filesystem::file_size(source(0))));
  EXPECT_EQ(plan_.bytes_there, 0);
  EXPECT_GT(plan_.read_rate, 0);
  EXPECT_TRUE(plan_.fits());
  EXPECT_THAT(plan_.to_text(), testing::HasSubstr(" in about "));
  plan_.free_bytes = plan_.bytes;
  EXPECT_FALSE(plan_.fits());
  EXPECT_THAT(plan_.to_text(), testing::HasSubstr("do not fit"));
  EXPECT_THROW(plan_stage(collection_, (node_ / "absent").string()), base::Error);
}

TEST_F(StagingTest, ATemporaryFolderThatIsNotHereEndsNothing) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  const std::string absent = (node_ / "absent").string();
  ::setenv("TMPDIR", absent.c_str(), 1);
  const StagePlan plan = plan_stage(collection_, "auto");
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  EXPECT_FALSE(plan.fits());
  EXPECT_EQ(plan.to_text(), base::text("no copies of the shards on this node: TMPDIR=", absent, " is no folder"));
}

TEST_F(StagingTest, PrefersTheScratchFolderThatTheSiteGivesAJob) {
  const std::string absent = (node_ / "absent").string();
  ::setenv("PBS_JOBFS", absent.c_str(), 1);
  EXPECT_EQ(plan_stage(collection_, "auto").why_not, base::text("PBS_JOBFS=", absent, " is no folder"));
  ::setenv("PBS_JOBFS", node_.c_str(), 1);
  EXPECT_EQ(plan_stage(collection_, "auto").why_not, "the shards lie on this node already");
  ::unsetenv("PBS_JOBFS");
}

TEST_F(StagingTest, AFolderThatCannotBeMadeIsToldAndEndsNothing) {
  plan_.folder = node_ / "absent" / "deeper";
  collection_.staging = std::make_shared<Staging>(collection_, plan_);
  EXPECT_TRUE(collection_.staging->is_done());
  EXPECT_THAT(collection_.staging->progress().trouble, testing::HasSubstr("absent/deeper: No such file or directory"));
  std::vector<std::byte> memory;
  EXPECT_GT(open_store(collection_)->read(3, memory).size(), 0u);  // from its source
  base::write_file(node_ / "taken", "a file in its place");
  plan_.folder = node_ / "taken";
  plan_.in_memory = true;
  EXPECT_THAT(Staging(collection_, plan_).progress().trouble, testing::HasSubstr("taken belongs to somebody else"));
  EXPECT_TRUE(std::filesystem::exists(node_ / "taken"));
}

TEST_F(StagingTest, CopiesEveryShardAndReadsTheCopies) {
  collection_.staging = std::make_shared<Staging>(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return collection_.staging->is_done(); }));
  EXPECT_EQ(collection_.staging->progress(), (Staging::Progress{3, plan_.bytes, ""}));
  expect_right_copies();
  const auto store = open_store(collection_);
  for (int shard = 0; shard < 3; ++shard) EXPECT_EQ(store->descriptor(shard), collection_.staging->descriptor(shard));
  const StagePlan again = plan_stage(collection_, node_.string());
  EXPECT_EQ(again.bytes_there, again.bytes);
  EXPECT_THAT(again.to_text(), testing::HasSubstr("on this node already"));
  EXPECT_THAT(again.to_text(), testing::Not(testing::HasSubstr("0 B/s")));
}

TEST_F(StagingTest, TwoRanksOfANodeShareOneCopy) {
  Staging first(collection_, plan_, {.bytes_per_second = 2e6}), second(collection_, plan_, {.bytes_per_second = 2e6});
  ASSERT_TRUE(comes_true([&] { return first.is_done() && second.is_done(); }));
  EXPECT_EQ(first.progress(), second.progress());
  EXPECT_EQ(first.progress().shards, 3);
  expect_right_copies();
}

TEST_F(StagingTest, ADamagedCopyIsReadFromItsSource) {
  collection_.staging = std::make_shared<Staging>(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return collection_.staging->is_done(); }));
  const Location where = open_store(collection_)->locate(9);
  flip_bit(copy(1), static_cast<size_t>(where.offset + where.size / 2));
  LoaderOptions options;
  options.data.image_size = 8;
  options.global_batch = 6;
  const auto loader = make_loader(collection_, options, {1, 0, 0});
  for (int64_t i = 0; i < loader->steps_per_epoch(); ++i) EXPECT_EQ(loader->next().size(), 6);
  EXPECT_EQ(collection_.staging->descriptor(1), -1);
  EXPECT_GE(collection_.staging->descriptor(0), 0);
  flip_bit(copy(2), static_cast<size_t>(open_store(collection_)->locate(17).offset));
  std::vector<std::byte> memory;
  EXPECT_NO_THROW(open_store(collection_)->read(17, memory));
}

TEST_F(StagingTest, EveryDamagedImageOfACopyIsReadFromItsSource) {
  for (const auto order : {spec::SampleOrder::full, spec::SampleOrder::windows}) {
    collection_.staging = std::make_shared<Staging>(collection_, plan_);
    ASSERT_TRUE(comes_true([&] { return collection_.staging->is_done(); }));
    for (const int64_t id : {9, 13, 14}) {
      const Location where = open_store(collection_)->locate(id);
      flip_bit(copy(1), static_cast<size_t>(where.offset + where.size / 2));
    }
    LoaderOptions options;
    options.data.image_size = 8;
    options.data.order = order;
    options.global_batch = 24;
    auto loader = make_loader(collection_, options, {1, 0, 0});
    EXPECT_EQ(loader->next().size(), 24);
    EXPECT_TRUE(loader->bad_samples().empty());
    EXPECT_EQ(collection_.staging->descriptor(1), -1);
    loader.reset();  // it reads ahead from the copies
    collection_.staging = nullptr;
    std::filesystem::remove_all(plan_.folder);
  }
}

TEST_F(StagingTest, AShardWithoutACopyHasNothingToForget) {
  flip_bit(source(1), 2000);
  const auto staging = std::make_shared<Staging>(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return staging->is_done(); }));
  EXPECT_FALSE(staging->forget(1));
  EXPECT_FALSE(staging->forget(1));
  EXPECT_TRUE(staging->forget(0));
  EXPECT_TRUE(staging->forget(0));
}

TEST_F(StagingTest, WhoHasNotTheLockChecksACopyToo) {
  auto first = std::make_unique<Staging>(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return first->is_done(); }));
  first.reset();
  flip_bit(copy(1), 700);
  const int lock = ::open((plan_.folder / ".lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const Staging second(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return second.progress().shards == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(second.descriptor(1), -1);
  ::close(lock);  // now it is ours to fix
  ASSERT_TRUE(comes_true([&] { return second.is_done(); }));
  EXPECT_EQ(second.progress().shards, 3);
  expect_right_copies();
}

TEST_F(StagingTest, NothingUnfinishedStaysBehind) {
  const base::Path partial = copy(0).string() + ".partial";
  auto slow = std::make_unique<Staging>(collection_, plan_, Staging::Options{.bytes_per_second = 3000});
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(partial); }));
  slow.reset();
  EXPECT_FALSE(std::filesystem::exists(partial)) << "stopped";
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Staging full(collection_, plan_);
  const bool ended = comes_true([&] { return full.is_done(); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(ended);
  EXPECT_THAT(full.progress().trouble, testing::HasSubstr("cannot write"));
  EXPECT_FALSE(std::filesystem::exists(partial)) << "the disk is full";
}

TEST_F(StagingTest, AShardOfTheSourceMayBeALink) {
  const base::Path elsewhere = folder_.path() / "elsewhere.tar";
  std::filesystem::rename(source(0), elsewhere);
  std::filesystem::create_symlink(elsewhere, source(0));
  EXPECT_GT(plan_stage(collection_, node_.string()).read_rate, 0);
  const Staging staging(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return staging.is_done(); }));
  EXPECT_EQ(staging.progress(), (Staging::Progress{3, plan_.bytes, ""}));
}

TEST_F(StagingTest, WhatAnEarlierRunLeftIsCheckedBeforeItIsUsed) {
  auto first = std::make_unique<Staging>(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return first->is_done(); }));
  first.reset();
  flip_bit(copy(1), 700);
  base::FileWriter(copy(2), base::FileWriter::Mode::truncate).write("short");
  const Staging second(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return second.is_done(); }));
  EXPECT_EQ(second.progress().shards, 3);
  expect_right_copies();
}

TEST_F(StagingTest, AKillInTheMiddleOfACopyCostsNothingButTime) {
  {  // the first shard is there: at the pace below it would take half a minute
    const Staging quick(collection_, plan_);
    ASSERT_TRUE(comes_true([&] { return quick.is_done(); }));
  }
  for (const int shard : {1, 2}) std::filesystem::remove(copy(shard));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
    const Staging slow(collection_, plan_, {.bytes_per_second = 1000});
    ::pause();
    ::_exit(0);
  }
  const base::Path partial = copy(1).string() + ".partial";
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(partial) && std::filesystem::file_size(partial) > 0; }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(std::filesystem::exists(copy(1)));
  const Staging next(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return next.is_done(); }));
  EXPECT_EQ(next.progress().shards, 3);
  expect_right_copies();
}

TEST_F(StagingTest, AnotherRankTakesOverFromTheDead) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
    const Staging slow(collection_, plan_, {.bytes_per_second = 1000});
    ::pause();
    ::_exit(0);
  }
  const base::Path partial = copy(0).string() + ".partial";
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(partial); }));
  const Staging waiting(collection_, plan_);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(waiting.progress().shards, 3);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(comes_true([&] { return waiting.is_done(); }));
  EXPECT_EQ(waiting.progress().shards, 3);
  expect_right_copies();
}

TEST_F(StagingTest, ADamagedSourceIsNotCopiedAndSaid) {
  flip_bit(source(1), 2000);
  const Staging staging(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return staging.is_done(); }));
  EXPECT_THAT(staging.progress().trouble, testing::HasSubstr("shard-000001.tar"));
  EXPECT_EQ(staging.descriptor(1), -1);
  EXPECT_FALSE(std::filesystem::exists(copy(1)));
}

TEST_F(StagingTest, CopiesInMemoryAreRemovedByTheLastOne) {
  plan_.in_memory = true;
  auto first = std::make_unique<Staging>(collection_, plan_), second = std::make_unique<Staging>(collection_, plan_);
  ASSERT_TRUE(comes_true([&] { return first->is_done() && second->is_done(); }));
  first.reset();
  expect_right_copies();
  second.reset();
  EXPECT_FALSE(std::filesystem::exists(plan_.folder));
}

}  // namespace
}  // namespace lockstep::loader
