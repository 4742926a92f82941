// SPDX-License-Identifier: Apache-2.0
// What a rank keeps with training.zero: measured with ranks as threads, beside what the trace of the same step says.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "lockstep/step/step.h"
#include "lockstep/trace/trace.h"

namespace lockstep::trace {
namespace {

using forecast::CollectiveKind;
using forecast::Event;
using forecast::EventKind;
using forecast::MemoryClass;
using forecast::Recording;

spec::Job small_transformer(int64_t zero) {
  spec::Job job;
  job.data.train = "synthetic";
  job.data.image_size = 32;
  job.model.name = "vit_tiny_patch16_224";
  job.model.depth = 4;
  job.model.classes = 10;
  job.training.global_batch = 8;
  job.training.optimizer.name = spec::OptimizerName::adamw;
  job.training.zero = zero;
  return job;
}

struct KeptBytes {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
};

// Alive after the last step.
KeptBytes promised_bytes(const Recording& recording) {
  std::map<int64_t, Event> alive;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth) alive[event.id] = event;
    if (event.kind == EventKind::death) alive.erase(event.id);
    if (event.kind == EventKind::step_end && event.id == recording.steps - 1) break;
  }
  KeptBytes kept;
  for (const auto& [id, event] : alive) {
    if (event.memory == MemoryClass::weights) kept.weights += event.bytes;
    if (event.memory == MemoryClass::gradients || event.memory == MemoryClass::buckets) kept.gradients += event.bytes;
    if (event.memory == MemoryClass::optimizer) kept.optimizer += event.bytes;
  }
  return kept;
}

int64_t storage_bytes(const std::vector<at::Tensor>& tensors) {
  std::map<const void*, int64_t> storages;
  for (const auto& tensor : tensors) {
    if (tensor.defined()) storages[tensor.storage().data()] = static_cast<int64_t>(tensor.storage().nbytes());
  }
  int64_t bytes = 0;
  for (const auto& [address, size] : storages) bytes += size;
  return bytes;
}

std::vector<at::Tensor> tensors_in(const std::vector<model::Named>& named) {
  std::vector<at::Tensor> all;
  for (const auto& entry : named) all.push_back(entry.tensor);
  return all;
}

// Of rank 0, in the storages that its tensors lie in.
enum class After { step, assembled };
KeptBytes measured_bytes(const spec::Job& job, int64_t ranks, After after = After::step) {
  KeptBytes kept;
  comm::run_thread_ranks(ranks, [&](comm::Group& group) {
    at::set_num_threads(1);
    auto network = model::make_network(job.model, job.data.image_size, 1);
    step::Step step(network, group, {.training = job.training});
    const int64_t rows = job.training.global_batch / ranks;
    const at::Tensor images = (at::arange(rows * 3 * 32 * 32, at::kFloat) * 0.37).sin().view({rows, 3, 32, 32});
    for (int64_t i = 0; i < 2; ++i) {
      const model::NamedTensors fields{{"image", images}, {"label", at::arange(rows, at::kLong)}};
      step.run({i, 0, job.training.global_batch, fields}, 0.001);
    }
    if (after == After::assembled) step.assemble();
    if (group.rank() != 0) return;
    auto weights = tensors_in(network.parameters());
    if (step.partitioning()) {
      const auto& parts = step.partitioning()->weight_parts();
      weights.insert(weights.end(), parts.begin(), parts.end());
    }
    kept = {storage_bytes(weights), storage_bytes(step.gradients()),
            storage_bytes(tensors_in(step.optimizer().state()))};
  });
  return kept;
}

void expect_near(int64_t measured, int64_t promised, const char* what, int64_t zero, int64_t ranks) {
  // Scalars of the optimizer and padding of small tensors are not what a plan is about.
  EXPECT_NEAR(static_cast<double>(measured), static_cast<double>(promised), 0.01 * static_cast<double>(promised) + 2048)
      << what << ", zero " << zero << ", " << ranks << " ranks";
}

TEST(ZeroTest, ARankKeepsWhatTheTraceSaysAndItsShareOfTheWhole) {
  std::printf("zero ranks  weights  (promised)  gradients  (promised)  optimizer  (promised)  bytes of a rank\n");
  for (const int64_t ranks : {1, 2, 4}) {
    const KeptBytes whole = measured_bytes(small_transformer(0), ranks);
    for (const int64_t zero : {0, 1, 2, 3}) {
      const spec::Job job = small_transformer(zero);
      const KeptBytes kept = measured_bytes(job, ranks);
      const KeptBytes promise = promised_bytes(trace_step(job, {.ranks = ranks}));
      std::printf("%4ld %5ld %9ld %9ld %9ld %9ld %9ld %9ld\n", static_cast<long>(zero), static_cast<long>(ranks),
                  static_cast<long>(kept.weights), static_cast<long>(promise.weights),
                  static_cast<long>(kept.gradients), static_cast<long>(promise.gradients),
                  static_cast<long>(kept.optimizer), static_cast<long>(promise.optimizer));
      expect_near(kept.weights, promise.weights, "weights", zero, ranks);
      expect_near(kept.gradients, promise.gradients, "gradients", zero, ranks);
      expect_near(kept.optimizer, promise.optimizer, "optimizer", zero, ranks);
      const auto share = [&](int64_t all, bool cut) { return cut ? 1.03 * static_cast<double>(all / ranks) : all; };
      EXPECT_LE(static_cast<double>(kept.optimizer), share(whole.optimizer, zero >= 1) + 4096);
      EXPECT_LE(static_cast<double>(kept.gradients), share(whole.gradients, zero >= 2) + 4096);
      EXPECT_LE(static_cast<double>(kept.weights), share(whole.weights, zero >= 3) + 4096);
    }
  }
}

// All that is alive when the network has whole weights between two steps, or behind the last one.
int64_t promised_weights_of_the_end(const Recording& recording) {
  std::map<int64_t, int64_t> alive;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth && event.memory == MemoryClass::weights) alive[event.id] = event.bytes;
    if (event.kind == EventKind::death) alive.erase(event.id);
  }
  int64_t bytes = 0;
  for (const auto& [id, size] : alive) bytes += size;
  return bytes;
}

TEST(ZeroTest, WholeWeightsBesideTheirPartsAreInTheTrace) {
  for (const int64_t zero : {0, 3}) {
    const spec::Job job = small_transformer(zero);
    const KeptBytes kept = measured_bytes(job, 4, After::assembled);
    const Recording recording = trace_step(job, {.ranks = 4});
    expect_near(kept.weights, promised_weights_of_the_end(recording), "whole weights", zero, 4);
    EXPECT_GE(kept.weights, recording.parameter_bytes);
  }
}

int64_t most_weights(const Recording& recording) {
  std::map<int64_t, int64_t> alive;
  int64_t bytes = 0, most = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth && event.memory == MemoryClass::weights) {
      bytes += alive[event.id] = event.bytes;
    } else if (event.kind == EventKind::death && alive.contains(event.id)) {
      bytes -= alive[event.id];
    } else if (event.kind == EventKind::step_begin) {
      most = event.id == 1 ? bytes : std::max(most, bytes);  // of warm steps: weights are whole before the first
    }
    most = std::max(most, bytes);
  }
  return most;
}

TEST(ZeroTest, AnEvaluationBetweenStepsHasWholeWeightsAndTheLastStepHasNone) {
  const spec::Job job = small_transformer(3);
  const Recording recording = trace_step(job, {.ranks = 4, .evaluation_rows = 2});
  EXPECT_GE(most_weights(recording), recording.parameter_bytes);
  expect_near(promised_bytes(recording).weights, promised_bytes(trace_step(job, {.ranks = 4})).weights, "parts", 3, 4);
  const bool evaluates = std::any_of(recording.operators.begin(), recording.operators.end(),
                                     [](const auto& call) { return call.phase == forecast::Phase::evaluate; });
  EXPECT_TRUE(evaluates);
}

// Bytes of each kind that one step hands to the network, of tensors larger than a handful of numbers.
std::map<CollectiveKind, int64_t> bytes_handed_over(const Recording& recording) {
  std::map<CollectiveKind, int64_t> bytes;
  std::set<int64_t> open;
  bool in_step = false;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::step_begin) in_step = true;
    if (event.kind == EventKind::step_end) in_step = false;
    if (event.kind == EventKind::collective) {
      if (in_step && event.bytes > 4096) bytes[event.collective] += event.bytes;
      EXPECT_TRUE(open.insert(event.id).second);
    } else if (event.kind == EventKind::wait) {
      EXPECT_EQ(open.erase(event.id), 1U) << "waited for once";
    }
  }
  EXPECT_TRUE(open.empty()) << "nothing is left under way";
  for (auto& [kind, sum] : bytes) sum /= recording.steps;
  return bytes;
}

TEST(ZeroTest, EveryLevelHandsOverWhatItsKindOfSharingNeeds) {
  const auto weights = static_cast<double>(trace_step(small_transformer(0), {.ranks = 4}).parameter_bytes);
  // The last block's weights are gathered for forward and again for backward, like all others.
  const std::map<CollectiveKind, double> expected[] = {
      {{CollectiveKind::all_reduce, 1}},
      {{CollectiveKind::all_reduce, 1}, {CollectiveKind::all_gather, 1}},
      {{CollectiveKind::reduce_scatter, 1}, {CollectiveKind::all_gather, 1}},
      {{CollectiveKind::reduce_scatter, 1}, {CollectiveKind::all_gather, 2}}};
  for (const int64_t zero : {0, 1, 2, 3}) {
    const auto handed = bytes_handed_over(trace_step(small_transformer(zero), {.ranks = 4}));
    ASSERT_EQ(handed.size(), expected[zero].size()) << zero;
    for (const auto& [kind, times] : expected[zero]) {
      EXPECT_NEAR(static_cast<double>(handed.at(kind)), times * weights, 0.05 * weights) << zero << name_of(kind);
    }
  }
}

}  // namespace
}  // namespace lockstep::trace
