// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/allocator_file.h"

#include <gtest/gtest.h>

#include "lockstep/forecast/replay.h"

namespace lockstep::measure {
namespace {

using forecast::AllocatorEventKind;

// What libtorch reports for: one block of 1000 bytes, freed; the peaks counted from zero; another one, kept.
const std::vector<lockstep_cuda_act> kActs = {
    {LOCKSTEP_CUDA_SEGMENT_ALLOC, 0, 0x7000000, 2 << 20, 0},
    {LOCKSTEP_CUDA_ALLOC, 0, 0x7000000, 1000, 0},
    {LOCKSTEP_CUDA_MARK, 0, 17, 0, 0},
    {LOCKSTEP_CUDA_FREE_REQUESTED, 0, 0x7000000, 1000, 0},
    {LOCKSTEP_CUDA_FREE_COMPLETED, 0, 0x7000000, 1000, 0},
    {LOCKSTEP_CUDA_MARK, 0, kPeaksReset, 0, 0},
    {LOCKSTEP_CUDA_ALLOC, 1, 0x7000000, 600, 0},
};

TEST(AllocatorFileTest, ActsBecomeEventsAndOtherMarksGo) {
  const auto events = allocator_events(kActs);
  std::vector<AllocatorEventKind> kinds;
  for (const auto& event : events) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<AllocatorEventKind>{AllocatorEventKind::segment_alloc, AllocatorEventKind::alloc,
                                                    AllocatorEventKind::free, AllocatorEventKind::peaks_reset,
                                                    AllocatorEventKind::alloc}));
}

TEST(AllocatorFileTest, TheFileReplaysToItsOwnPeaks) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "cell.rec";
  Cell cell;
  cell.job.model.name = "resnet18";
  lockstep_cuda_memory memory{};
  memory.peak = {1024, 1024, 2 << 20, 600};
  write_allocator_file(path, kActs, cell, memory, 3);
  const auto recording = forecast::read_allocator_recording(path);
  EXPECT_EQ(recording.title, "resnet18");
  EXPECT_EQ(recording.steps, 3);
  EXPECT_EQ(forecast::replay(recording).peaks, recording.peaks);
}

}  // namespace
}  // namespace lockstep::measure
