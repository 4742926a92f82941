// SPDX-License-Identifier: Apache-2.0
// The storages of a traced step beside those of the same step on a GPU, as its allocator recorded them.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "lockstep/forecast/allocator_recording.h"
#include "lockstep/trace/trace.h"

namespace lockstep::trace {
namespace {

using forecast::AllocatorEventKind;
using forecast::EventKind;

struct Change {  // of what is alive: bytes come or go
  bool birth;
  int64_t bytes;
  int64_t storage;

  bool same(const Change& other) const { return birth == other.birth && bytes == other.bytes; }
};

std::vector<Change> traced_changes(const forecast::Recording& recording) {
  std::vector<Change> changes;
  std::vector<int64_t> sizes;
  for (const auto& event : recording.events) {
    if (event.kind == EventKind::birth) {
      sizes.push_back(event.bytes);
      changes.push_back({true, event.bytes, event.id});
    } else if (event.kind == EventKind::death) {
      changes.push_back({false, sizes.at(static_cast<size_t>(event.id)), event.id});
    }
  }
  return changes;
}

std::vector<Change> real_changes(const forecast::AllocatorRecording& recording) {
  std::vector<Change> changes;
  std::vector<int64_t> sizes;
  for (const auto& event : recording.events) {
    if (event.kind == AllocatorEventKind::alloc) {
      sizes.push_back(event.size);
      changes.push_back({true, event.size, event.block});
    } else if (event.kind == AllocatorEventKind::free || event.kind == AllocatorEventKind::free_completed) {
      changes.push_back({false, sizes.at(static_cast<size_t>(event.block)), event.block});
    }
  }
  return changes;
}

struct Agreement {
  size_t agreed = 0;       // changes of the trace that the GPU made too, in this order
  int64_t workspaces = 0;  // blocks of the GPU alone: what kernels ask for beside their outputs
};

// Walks both lists. What the GPU has and the trace has not is a workspace, and so is its end.
Agreement compare(const std::vector<Change>& traced, const std::vector<Change>& real) {
  Agreement agreement;
  std::set<int64_t> workspaces;
  for (const Change& change : real) {
    if (agreement.agreed < traced.size() && change.same(traced[agreement.agreed]) &&
        workspaces.count(change.storage) == 0) {
      ++agreement.agreed;
    } else if (change.birth) {
      workspaces.insert(change.storage);
    } else if (workspaces.erase(change.storage) == 0) {
      return agreement;  // the GPU freed what the trace still holds
    }
  }
  agreement.workspaces = static_cast<int64_t>(workspaces.size());
  return agreement;
}

TEST(RealGpuTest, StoragesComeAndGoAsOnTheGpuInTheSameOrder) {
  int64_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator("results/recordings/lockstep")) {
    const auto real = forecast::read_allocator_recording(entry.path());
    spec::Job job;
    job.model.name = real.title;
    job.model.classes = 1000;
    job.training.global_batch = real.batch;
    job.training.precision = spec::Precision::fp32;
    job.training.kernels = spec::Kernels::reference;  // the recordings are of libtorch's operators
    for (const auto precision : {spec::Precision::tf32, spec::Precision::bf16, spec::Precision::amp}) {
      if (name_of(precision) == real.precision) job.training.precision = precision;
    }
    if (real.optimizer == "adamw") job.training.optimizer.name = spec::OptimizerName::adamw;
    if (entry.path().stem().string().ends_with("-recompute")) job.training.recompute = {"all"};
    const auto traced = traced_changes(trace_step(job, {.attention = Attention::cudnn, .steps = real.steps}));
    const Agreement agreement = compare(traced, real_changes(real));
    EXPECT_EQ(agreement.agreed, traced.size())
        << entry.path() << ": or the step has changed since; then record it again (bench cells --allocator)";
    EXPECT_LE(agreement.workspaces, 4) << entry.path() << ": cuBLAS's, two a thread, stay";
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace lockstep::trace
