// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/background_save.h"

#include <gtest/gtest.h>

#include <future>

#include "lockstep/base/error.h"
#include "lockstep/run/faulty_disk.h"

namespace lockstep::run {
namespace {

// A save whose part waits for the gate to open before it gives its bytes.
Save gated_save(int64_t step, const std::shared_future<void>& gate) {
  Save save;
  save.step = step;
  save.state = base::Json::object();
  save.parts.push_back({"weights.safetensors", 4, [gate](const Sink& sink) {
                          gate.wait();
                          sink(std::as_bytes(std::span("abcd", 4)));
                        }});
  return save;
}

TEST(BackgroundSaveTest, TheCallerGoesOnWhileItIsWritten) {
  const base::TemporaryFolder folder;
  BackgroundSave saver{CheckpointStore(folder.path())};
  EXPECT_FALSE(saver.wait());
  std::promise<void> gate;
  saver.start(gated_save(7, gate.get_future().share()));
  EXPECT_TRUE(saver.under_way());
  EXPECT_FALSE(saver.outcome());  // still at the gate
  EXPECT_FALSE(CheckpointStore(folder.path()).newest().checkpoint);
  gate.set_value();
  const auto outcome = saver.wait();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->failure);
  EXPECT_EQ(outcome->step, 7);
  EXPECT_EQ(outcome->bytes, 4);
  EXPECT_GT(outcome->seconds, 0);
  EXPECT_EQ(outcome->folder, folder.path() / "step-00000007");
  EXPECT_EQ(CheckpointStore(folder.path()).newest().checkpoint->step, 7);
  EXPECT_FALSE(saver.under_way());
  EXPECT_FALSE(saver.outcome());
}

TEST(BackgroundSaveTest, AFailureComesOutAndTheNextSaveMayBeTried) {
  const base::TemporaryFolder folder;
  std::promise<void> gate;
  gate.set_value();
  const auto open = gate.get_future().share();
  BackgroundSave saver{CheckpointStore(folder.path(), std::make_shared<FaultyDisk>(FaultyDisk::Fault::fail, 4))};
  saver.start(gated_save(1, open));
  const auto first = saver.wait();
  ASSERT_TRUE(first && first->failure);
  EXPECT_THROW(std::rethrow_exception(first->failure), base::Error);
  saver.start(gated_save(2, open));
  EXPECT_FALSE(saver.wait()->failure);
  EXPECT_EQ(CheckpointStore(folder.path()).newest().checkpoint->step, 2);
}

TEST(BackgroundSaveTest, TheEndOfTheScopeWaitsForTheSave) {
  const base::TemporaryFolder folder;
  std::promise<void> gate;
  gate.set_value();
  { BackgroundSave{CheckpointStore(folder.path())}.start(gated_save(3, gate.get_future().share())); }
  EXPECT_EQ(CheckpointStore(folder.path()).newest().checkpoint->step, 3);
}

}  // namespace
}  // namespace lockstep::run
