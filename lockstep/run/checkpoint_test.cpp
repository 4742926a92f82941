// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/faulty_disk.h"

namespace lockstep::run {
namespace {

using base::Error;
using base::Json;
using base::Path;
using base::text;
using Fault = FaultyDisk::Fault;

// Weights whose every value is the step, so that a reader can tell whose they are.
struct Content {
  std::vector<float> values;
  explicit Content(int64_t step, size_t count = 300) : values(count, static_cast<float>(step)) {}

  Save save(int64_t step) const {
    const weights::TensorView tensor{
        "head.weight", weights::Dtype::F32, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))};
    Save save;
    save.step = step;
    save.state["seed"] = 7;
    save.parts = {safetensors_part("weights.safetensors", {tensor}), safetensors_part("optimizer.safetensors", {})};
    return save;
  }
};

Path save_step(CheckpointStore& store, int64_t step, int64_t keep = 2, bool best = false) {
  const Content content(step);
  Save save = content.save(step);
  save.keep = keep;
  save.best = best;
  return store.save(save);
}

// The step whose weights a found checkpoint really holds.
int64_t step_in_weights(const Checkpoint& checkpoint) {
  const weights::SafetensorsFile file(checkpoint.file("weights.safetensors"));
  float value = 0;
  std::memcpy(&value, file.tensors().at(0).bytes.data(), sizeof value);
  return static_cast<int64_t>(value);
}

int64_t newest_step(const Path& folder) {
  const Found found = CheckpointStore(folder).newest();
  if (!found.checkpoint) return -1;
  EXPECT_EQ(found.checkpoint->step, step_in_weights(*found.checkpoint));
  return found.checkpoint->step;
}

std::set<std::string> names_in(const Path& folder) {
  std::set<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder)) names.insert(item.path().filename().string());
  return names;
}

TEST(CheckpointTest, FindsTheNewestWithItsState) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path() / "checkpoints");
  EXPECT_FALSE(store.newest().checkpoint);
  save_step(store, 1);
  const Path second = save_step(store, 2);
  const Found found = store.newest();
  ASSERT_TRUE(found.checkpoint);
  EXPECT_EQ(found.checkpoint->folder, second);
  EXPECT_EQ(found.checkpoint->state.at("seed").as_int(), 7);
  EXPECT_EQ(step_in_weights(*found.checkpoint), 2);
  EXPECT_TRUE(found.passed_over.empty());
  EXPECT_EQ(base::read_file(temporary.path() / "checkpoints" / "latest"), "step-00000002\n");
}

TEST(CheckpointTest, KeepsTheNewestAndTheBest) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  for (int64_t step = 1; step <= 6; ++step) save_step(store, step, 2, step == 3);
  EXPECT_EQ(names_in(temporary.path()),
            (std::set<std::string>{"best", "latest", "step-00000003", "step-00000005", "step-00000006"}));
  EXPECT_EQ(store.best().checkpoint->step, 3);
  EXPECT_EQ(store.newest().checkpoint->step, 6);
}

TEST(CheckpointTest, KeepsMilestones) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  for (int64_t step = 1; step <= 7; ++step) {
    const Content content(step);
    Save save = content.save(step);
    save.keep = 1;
    save.milestone_steps = 3;
    store.save(save);
  }
  EXPECT_EQ(names_in(temporary.path()),
            (std::set<std::string>{"latest", "step-00000003", "step-00000006", "step-00000007"}));
}

TEST(CheckpointTest, ABestOneOfAnAbandonedFutureIsForgotten) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  save_step(store, 1);
  save_step(store, 5, 2, true);
  EXPECT_EQ(store.newest(4).checkpoint->step, 1);  // what a rewind asks for
  save_step(store, 3);
  EXPECT_EQ(names_in(temporary.path()), (std::set<std::string>{"latest", "step-00000001", "step-00000003"}));
  EXPECT_EQ(store.best().checkpoint->step, 3);
}

TEST(CheckpointTest, KeepOfNoneStillKeepsTheNewOne) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  save_step(store, 1, 0);
  save_step(store, 2, 0);
  EXPECT_EQ(names_in(temporary.path()), (std::set<std::string>{"latest", "step-00000002"}));
}

TEST(CheckpointTest, SavingBelowADamagedOneForgetsTheAbandonedFuture) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  save_step(store, 10);
  const Path damaged = save_step(store, 20);
  base::write_file(damaged / "weights.safetensors", "x");
  EXPECT_EQ(newest_step(temporary.path()), 10);
  save_step(store, 15, 1);
  EXPECT_EQ(names_in(temporary.path()), (std::set<std::string>{"latest", "step-00000015"}));
}

TEST(CheckpointTest, WhatItDidNotMakeItDoesNotRemove) {
  const base::TemporaryFolder folder;
  CheckpointStore store(folder.path());
  for (const char* name : {"step-00000007", "step-00000020", "step-00000020.old"}) {
    base::make_folders(folder.path() / name);
    base::write_file(folder.path() / name / "mine", name);
  }
  for (const int64_t step : {10, 15, 20, 20}) save_step(store, step, 1);
  EXPECT_EQ(store.untidy(), "");
  EXPECT_EQ(newest_step(folder.path()), 20);
  EXPECT_FALSE(base::is_there(folder.path() / "step-00000010"));
  EXPECT_EQ(base::read_file(folder.path() / "step-00000007" / "mine"), "step-00000007");
  EXPECT_EQ(base::read_file(folder.path() / "step-00000020.aside" / "mine"), "step-00000020");
  EXPECT_EQ(base::read_file(folder.path() / "step-00000020.old.aside" / "mine"), "step-00000020.old");
}

TEST(CheckpointTest, AStateOfAnotherStepIsDamage) {
  const base::TemporaryFolder folder;
  CheckpointStore store(folder.path());
  const Content content(5);
  Save save = content.save(5);
  save.state["step"] = 9;  // stands behind the store's own
  store.save(save);
  EXPECT_EQ(damage(folder.path() / "step-00000005"), "state.json is that of step 9");
}

TEST(CheckpointTest, AManifestThatNamesAFileElsewhereIsDamage) {
  const base::TemporaryFolder folder;
  CheckpointStore store(folder.path());
  const Content content(5);
  Save save = content.save(5);
  save.parts[1].name = "../optimizer.safetensors";
  store.save(save);
  EXPECT_EQ(damage(folder.path() / "step-00000005"), "\"../optimizer.safetensors\" is no file of this checkpoint");
}

TEST(CheckpointTest, SavesTheSameStepAgain) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  save_step(store, 4);
  const Content content(4);
  Save again = content.save(4);
  again.state["seed"] = 8;
  store.save(again);
  EXPECT_EQ(store.newest().checkpoint->state.at("seed").as_int(), 8);
  EXPECT_EQ(names_in(temporary.path()), (std::set<std::string>{"latest", "step-00000004"}));
}

TEST(CheckpointTest, EveryFlippedByteIsNoticed) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  save_step(store, 1);
  const Path folder = save_step(store, 2);
  int64_t flips = 0;
  for (const char* name : {"weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json"}) {
    const std::string good = base::read_file(folder / name);
    for (size_t at = 0; at < good.size(); ++at, ++flips) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      std::FILE* file = std::fopen((folder / name).c_str(), "wb");
      std::fwrite(bad.data(), 1, bad.size(), file);
      std::fclose(file);
      ASSERT_NE(damage(folder), "") << name << " at byte " << at;
    }
    const Found found = store.newest();
    ASSERT_TRUE(found.checkpoint);
    EXPECT_EQ(found.checkpoint->step, 1);
    EXPECT_EQ(found.passed_over.size(), 1U);
    base::write_file(folder / name, good);
  }
  EXPECT_EQ(damage(folder), "");
  EXPECT_GT(flips, 1500);
}

TEST(CheckpointTest, EveryTruncationIsNoticed) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  const Path folder = save_step(store, 2);
  for (const char* name : {"weights.safetensors", "state.json", "manifest.json"}) {
    const std::string good = base::read_file(folder / name);
    for (size_t size = good.size(); size-- > 0;) {
      std::filesystem::resize_file(folder / name, size);
      ASSERT_NE(damage(folder), "") << name << " cut to " << size;
    }
    base::write_file(folder / name, good);
  }
  std::filesystem::remove(folder / "optimizer.safetensors");
  EXPECT_THAT(damage(folder), testing::HasSubstr("optimizer.safetensors is missing"));
}

TEST(CheckpointTest, AnotherFormatIsNamed) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  const Path folder = save_step(store, 2);
  base::write_file(folder / "manifest.json", "{\"format\": 2}");
  EXPECT_NE(damage(folder), "");
  EXPECT_FALSE(store.newest().checkpoint);
}

TEST(CheckpointTest, BestThatIsDamagedGivesTheNewestGoodOne) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  const Path best = save_step(store, 1, 2, true);
  save_step(store, 2);
  base::write_file(best / "state.json", "{}");
  const Found found = store.best();
  EXPECT_EQ(found.checkpoint->step, 2);
  EXPECT_EQ(found.passed_over.size(), 1U);
}

TEST(CheckpointTest, FullDiskIsSaidBeforeAnythingIsWritten) {
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  Save save = Content(1).save(1);
  save.parts[0].bytes = int64_t{1} << 60;
  try {
    store.save(save);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_THAT(error.what(), testing::HasSubstr("bytes, "));
  }
  EXPECT_TRUE(names_in(temporary.path()).empty());
}

// Every folder under a final name must be whole, and the newest good one at least `least`.
void expect_nothing_lost(const Path& folder, int64_t least, const std::string& when) {
  for (const auto& name : names_in(folder)) {
    EXPECT_EQ(name.starts_with("step-") ? damage(folder / name) : "", "") << name << " " << when;
  }
  EXPECT_GE(newest_step(folder), least) << when;
}

class CheckpointFaultTest : public testing::TestWithParam<std::pair<Fault, bool>> {};

TEST_P(CheckpointFaultTest, FaultAtEveryActLosesNoGoodCheckpoint) {
  const auto [fault, power_loss] = GetParam();
  int64_t faults = 0;
  for (const bool same_step : {false, true}) {
    for (int64_t at = 0;; ++at) {
      const base::TemporaryFolder temporary;
      CheckpointStore before(temporary.path(), std::make_shared<FaultyDisk>(Fault::none, 0));  // spares real fsyncs
      save_step(before, 1, 1);
      const auto disk = std::make_shared<FaultyDisk>(fault, at);
      CheckpointStore store(temporary.path(), disk);
      bool done = false;
      try {
        save_step(store, same_step ? 1 : 2, 1, true);
        done = true;
      } catch (const Error&) {
      } catch (const PowerLost&) {
      }
      if (power_loss) disk->lose_unsynced();
      expect_nothing_lost(temporary.path(), done && !same_step ? 2 : 1, text("after a fault at act ", at));
      if (fault == Fault::fail && !done) {
        save_step(store, 3, 1);  // training went on; the next save succeeds and tidies up
        EXPECT_EQ(newest_step(temporary.path()), 3);
        for (const auto& name : names_in(temporary.path())) EXPECT_FALSE(name.starts_with(".saving-")) << name;
      }
      if (done && disk->acts() <= at) break;
      ++faults;
    }
  }
  EXPECT_GT(faults, 40);
}

INSTANTIATE_TEST_SUITE_P(Faults, CheckpointFaultTest,
                         testing::Values(std::pair{Fault::fail, false}, std::pair{Fault::persist, false},
                                         std::pair{Fault::crash, false}, std::pair{Fault::crash, true}));

TEST(CheckpointTest, APowerFailureTakesNoSyncedCheckpointWithItsFolder) {
  const base::TemporaryFolder temporary;
  const auto disk = std::make_shared<FaultyDisk>(Fault::none, 0);
  CheckpointStore store(temporary.path() / "checkpoints", disk);
  save_step(store, 1);
  disk->lose_unsynced();
  EXPECT_EQ(newest_step(temporary.path() / "checkpoints"), 1);
}

// An empty answer would let the run begin at step 0, and its first save remove all that is beyond.
TEST(CheckpointTest, AFolderThatCannotBeListedIsNotAnEmptyOne) {
  const base::TemporaryFolder temporary;
  CheckpointStore before(temporary.path());
  save_step(before, 1);
  const CheckpointStore store(temporary.path(), std::make_shared<FaultyDisk>(Fault::fail, 0, EIO));
  EXPECT_THROW(store.newest(), Error);
  EXPECT_EQ(store.newest().checkpoint->step, 1);
}

// A disk beside which a run goes on: as soon as a folder is listed, a newer checkpoint takes the place of all others.
class OvertakenDisk final : public FaultyDisk {
 public:
  OvertakenDisk() : FaultyDisk(Fault::none, 0) {}
  std::vector<Path> list(const Path& folder) override {
    std::vector<Path> all = FaultyDisk::list(folder);
    CheckpointStore store(folder);
    if (step_ < 4) save_step(store, ++step_, 1);
    return all;
  }

 private:
  int64_t step_ = 1;
};

TEST(CheckpointTest, FindsTheOneThatTookThePlaceOfAllThatWereListed) {
  const base::TemporaryFolder temporary;
  CheckpointStore before(temporary.path());
  save_step(before, 1);
  const CheckpointStore store(temporary.path(), std::make_shared<OvertakenDisk>());
  const Found found = store.newest();
  ASSERT_TRUE(found.checkpoint);
  EXPECT_EQ(found.checkpoint->step, 4);
}

TEST(CheckpointTest, WhatFailsBehindTheCommitFailsNoSaveAndIsDoneLater) {
  int64_t untidy = 0;
  for (int64_t at = 0;; ++at) {
    const base::TemporaryFolder temporary;
    CheckpointStore before(temporary.path(), std::make_shared<FaultyDisk>(Fault::none, 0));
    save_step(before, 1, 1, true);
    const auto disk = std::make_shared<FaultyDisk>(Fault::fail, at);
    CheckpointStore store(temporary.path(), disk);
    try {
      save_step(store, 2, 1, true);
    } catch (const Error&) {
      continue;  // before the commit, or not durable
    }
    if (disk->acts() <= at) break;
    ++untidy;
    EXPECT_NE(store.untidy(), "") << "at act " << at;
    save_step(store, 3, 1);
    EXPECT_EQ(store.untidy(), "");
    EXPECT_EQ(store.best().checkpoint->step, 2) << "at act " << at;
    EXPECT_THAT(names_in(temporary.path()),
                testing::UnorderedElementsAre("step-00000002", "step-00000003", "latest", "best"));
  }
  EXPECT_GE(untidy, 6);
}

// In a process of its own, which ends with the test's whatever becomes of that.
[[noreturn]] void save_until_killed(const Path& folder, int64_t step) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    CheckpointStore store(folder);
    for (;; ++step) {
      const Content content(step, 20000);
      store.save(content.save(step));
    }
  } catch (...) {
    ::_exit(1);
  }
}

TEST(CheckpointTest, KillInMidSaveLosesNoGoodCheckpoint) {
  const base::TemporaryFolder temporary;
  int64_t newest = -1;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    if (child == 0) save_until_killed(temporary.path(), std::max<int64_t>(newest, 0) + 1);
    const Path first = temporary.path() / "latest";  // no closer look while the child may take away what is looked at
    for (int i = 0; round == 0 && i < 3000 && !std::filesystem::exists(first); ++i) ::usleep(20000);
    ::usleep(static_cast<useconds_t>(15000 + 3777 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    expect_nothing_lost(temporary.path(), newest, text("after kill ", round));
    newest = std::max<int64_t>(newest, newest_step(temporary.path()));
  }
  EXPECT_GT(newest, 0);
}

}  // namespace
}  // namespace lockstep::run
