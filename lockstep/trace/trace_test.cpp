// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lockstep/model/network.h"

namespace lockstep::trace {
namespace {

using forecast::Event;
using forecast::EventKind;
using forecast::MemoryClass;
using forecast::OperatorClass;
using forecast::Phase;
using forecast::Recording;

spec::Job job_of(const std::string& model, int64_t batch, spec::Precision precision = spec::Precision::fp32,
                 spec::OptimizerName optimizer = spec::OptimizerName::sgd) {
  spec::Job job;
  job.data.train = "synthetic";
  job.task = model.starts_with("fastbox") ? spec::Task::detect : spec::Task::classify;
  if (model.starts_with("fcdensenet")) job.task = spec::Task::segment;
  if (model.starts_with("attend_")) job.task = spec::Task::caption;
  if (model == "hashed_linear") job.task = spec::Task::text;
  if (model == "convlstm" || model == "rainnet") job.task = spec::Task::nowcast;
  job.model.name = model;
  job.model.classes = job.task == spec::Task::segment ? 11 : 1000;
  job.training.global_batch = batch;
  job.training.precision = precision;
  job.training.optimizer.name = optimizer;
  if (model.find("rcnn_") != std::string::npos) {
    job.task = spec::Task::instances;
    job.instances.masks = model.starts_with("maskrcnn_");
  }
  return job;
}

int64_t peak_live_bytes(const Recording& recording) {
  std::map<int64_t, int64_t> bytes;
  int64_t now = 0;
  int64_t peak = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth) now += bytes[event.id] = event.bytes;
    if (event.kind == EventKind::death) now -= bytes[event.id];
    peak = std::max(peak, now);
  }
  return peak;
}

int64_t bytes_born(const Recording& recording, MemoryClass memory) {
  int64_t bytes = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth && event.memory == memory) bytes += event.bytes;
  }
  return bytes;
}

double flops(const Recording& recording, OperatorClass kind, Phase phase) {
  double all = 0;
  for (const Event& event : recording.events) {
    if (event.kind != EventKind::run) continue;
    const auto& call = recording.operators[static_cast<size_t>(event.id)];
    if (call.kind == kind && call.phase == phase) all += call.flops;
  }
  return all;
}

// The events of step `index`, storages named by the order of their births within it: -1 is one from before.
std::vector<Event> step_events(const Recording& recording, int64_t index) {
  std::vector<Event> events;
  std::map<int64_t, int64_t> names;
  bool inside = false;
  for (Event event : recording.events) {
    if (event.kind == EventKind::step_begin) inside = event.id == index;
    if (!inside) continue;
    if (event.kind == EventKind::birth) names.emplace(event.id, static_cast<int64_t>(names.size()));
    if (event.kind == EventKind::birth || event.kind == EventKind::death) {
      event.id = names.count(event.id) ? names[event.id] : -1;
    } else if (event.kind == EventKind::step_begin || event.kind == EventKind::step_end) {
      event.id = 0;
    }
    events.push_back(event);
    if (event.kind == EventKind::step_end) break;
  }
  return events;
}

class EveryNetwork : public testing::TestWithParam<std::string> {};

TEST_P(EveryNetwork, IsTracedInEveryPrecisionWithEveryOptimizer) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16, spec::Precision::amp}) {
    for (const auto optimizer : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
      const Recording recording = trace_step(job_of(GetParam(), 4, precision, optimizer), {.steps = 2});
      EXPECT_EQ(recording.steps, 2);
      EXPECT_EQ(recording.estimated, std::vector<std::string>()) << "rows of lockstep/trace/table.cpp are missing";
      EXPECT_GT(recording.parameters, 0);
      EXPECT_EQ(recording.parameter_bytes, 4 * recording.parameters);
      // Of two steps; 16 bit wide where the weights have copies that last.
      const int64_t gradients = bytes_born(recording, MemoryClass::gradients);
      EXPECT_LE(gradients, 2 * recording.parameter_bytes);
      EXPECT_GE(gradients, (precision == spec::Precision::fp32 ? 2 : 1) * recording.parameter_bytes);
      const int64_t states = optimizer == spec::OptimizerName::adamw ? 2 : 1;
      EXPECT_GE(bytes_born(recording, MemoryClass::optimizer), states * recording.parameter_bytes);
      EXPECT_EQ(recording.attention.empty(), !GetParam().starts_with("vit"));
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}
INSTANTIATE_TEST_SUITE_P(Zoo, EveryNetwork, testing::ValuesIn(model::network_names()), test_name);

TEST(TraceTest, AnLstmThatComputesItsGatesAgainIsTracedInEveryPrecision) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16, spec::Precision::amp}) {
    spec::Job job = job_of("convlstm", 2, precision);
    job.data.image_size = 32;
    job.nowcast.widths = {8, 4};
    job.nowcast.recompute_steps = true;
    EXPECT_EQ(trace_step(job, {.steps = 2}).estimated, std::vector<std::string>());
  }
}

TEST(TraceTest, ResNet50HoldsWhatItsLayersKeep) {
  const Recording recording = trace_step(job_of("resnet50", 32));
  EXPECT_EQ(recording.parameters, 25557032);
  EXPECT_EQ(recording.blocks.size(), 19);
  EXPECT_EQ(recording.micro_batch, 32);
  EXPECT_EQ(recording.accumulation, 1);
  EXPECT_NEAR(static_cast<double>(peak_live_bytes(recording)), 2.99e9, 0.01e9);  // counted by hand from its layers
  // 4.09 G multiply-adds an image (He et al. 2015, table 1, with the stride in the 3x3 convolution).
  EXPECT_NEAR(flops(recording, OperatorClass::convolution, Phase::forward) / (3 * 32 * 2), 4.09e9, 0.01e9);
  EXPECT_NEAR(flops(recording, OperatorClass::matmul, Phase::forward), 3.0 * 32 * 2 * 2048 * 1000, 1);
}

TEST(TraceTest, ADetectorWaitsForNothingAndIsKnownByRule) {
  auto job = job_of("maskrcnn_resnet50_fpn", 2, spec::Precision::bf16);
  job.model.classes = 90;
  job.data.image_size = spec::ImageSize(800, 1216);
  const Recording recording = trace_step(job, {.evaluation_rows = 1, .steps = 2});
  EXPECT_EQ(recording.parameters, 44454513);  // torchvision's, with batch norms that learn
  EXPECT_EQ(recording.estimated, std::vector<std::string>()) << "rows of lockstep/trace/table.cpp are missing";
  for (const auto& call : recording.operators) {
    if (call.block < 0) continue;  // the step reads its loss, an evaluation its detections
    EXPECT_NE(call.kind, OperatorClass::host) << call.name << " in block " << call.block;
    for (const char* word : {"nonzero", "masked_select", "unique", "item"}) {
      EXPECT_EQ(call.name.find(word), std::string::npos) << call.name;
    }
  }
}

TEST(TraceTest, ContiguousImagesAreTracedToo) {
  for (const char* model : {"resnet18", "efficientnet_lite0", "googlenet", "vit_tiny_patch16_224"}) {
    auto job = job_of(model, 4);
    job.training.kernels = spec::Kernels::reference;  // of a patch embedding ours makes a matrix product
    const Recording usual = trace_step(job, {.steps = 1});
    job.model.layout = spec::Layout::contiguous;
    const Recording recording = trace_step(job, {.steps = 1});
    for (const auto kind : {OperatorClass::convolution, OperatorClass::convolution_weight_gradient}) {
      const auto phase = kind == OperatorClass::convolution ? Phase::forward : Phase::backward;
      EXPECT_EQ(flops(recording, kind, phase), flops(usual, kind, phase)) << model;
    }
  }
}

TEST(TraceTest, BackwardRunsOnAutogradsThreadAndBelongsToTheBlocks) {
  const Recording recording = trace_step(job_of("resnet18", 4), {.steps = 1});
  std::set<int64_t> blocks;
  int64_t gradients = 0;
  for (const Event& event : recording.events) {
    if (event.kind != EventKind::run) continue;
    const auto& call = recording.operators[static_cast<size_t>(event.id)];
    EXPECT_EQ(event.thread == 1, call.phase == Phase::backward) << call.name;
    if (call.kind == OperatorClass::convolution_weight_gradient) {
      ++gradients;
      blocks.insert(call.block);
    }
  }
  EXPECT_EQ(gradients, 20);     // convolutions of ResNet-18
  EXPECT_EQ(blocks.size(), 9);  // the stem and eight residual blocks
  EXPECT_EQ(*blocks.begin(), 0);
  EXPECT_EQ(*blocks.rbegin(), 8);
}

TEST(TraceTest, GradientOfTheInputComesBeforeThatOfTheWeight) {
  const Recording recording = trace_step(job_of("resnet18", 4), {.steps = 1});
  std::vector<OperatorClass> order;
  for (const Event& event : recording.events) {
    if (event.kind != EventKind::run) continue;
    const auto kind = recording.operators[static_cast<size_t>(event.id)].kind;
    const bool gradient =
        kind == OperatorClass::convolution_input_gradient || kind == OperatorClass::convolution_weight_gradient;
    if (gradient) order.push_back(kind);
  }
  ASSERT_EQ(order.size(), 39);  // no gradient of the images
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(order[i], i % 2 == 0 && i + 1 < order.size() ? OperatorClass::convolution_input_gradient
                                                           : OperatorClass::convolution_weight_gradient);
  }
}

TEST(TraceTest, EveryStorageEndsOnceAndOnlyLastingOnesOutliveAStep) {
  const Recording recording = trace_step(job_of("resnet18", 4));
  std::map<int64_t, Event> alive;
  std::map<MemoryClass, int64_t> left;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth) {
      EXPECT_TRUE(alive.emplace(event.id, event).second);
    } else if (event.kind == EventKind::death) {
      EXPECT_EQ(alive.erase(event.id), 1);
    }
  }
  for (const auto& [id, event] : alive) left[event.memory] += event.bytes;
  EXPECT_EQ(left[MemoryClass::gradients], recording.parameter_bytes);
  EXPECT_EQ(left[MemoryClass::inputs], 0);
  EXPECT_LT(left[MemoryClass::activations], 1 << 20);  // the batch statistics kept for a step that is not taken
  EXPECT_EQ(recording.checkpoint_bytes, left[MemoryClass::weights] + left[MemoryClass::optimizer] + 8);  // + the count
}

TEST(TraceTest, LaterStepsAreAlike) {
  const Recording recording = trace_step(job_of("vit_tiny_patch16_224", 4), {.steps = 3});
  EXPECT_EQ(step_events(recording, 1), step_events(recording, 2));
}

TEST(TraceTest, TwoTracesAreEqual) {
  const auto job = job_of("densenet121", 4);
  EXPECT_EQ(trace_step(job), trace_step(job));
}

TEST(TraceTest, EventsOfAnotherBatchCorrespondAndAreAffine) {
  const Recording small = trace_step(job_of("resnet18", 8));
  const Recording middle = trace_step(job_of("resnet18", 12));
  const Recording large = trace_step(job_of("resnet18", 32));
  ASSERT_EQ(small.events.size(), large.events.size());
  ASSERT_EQ(small.events.size(), middle.events.size());
  int64_t not_affine = 0;
  for (size_t i = 0; i < small.events.size(); ++i) {
    ASSERT_EQ(small.events[i].kind, large.events[i].kind);
    ASSERT_EQ(small.events[i].memory, large.events[i].memory);
    const int64_t slope = (large.events[i].bytes - small.events[i].bytes) / 24;
    if (middle.events[i].bytes != small.events[i].bytes + 4 * slope) ++not_affine;
  }
  EXPECT_EQ(not_affine, 0);
}

TEST(TraceTest, MicroBatchesRepeatTheirEvents) {
  auto job = job_of("resnet18", 12);
  job.training.micro_batch = 4;
  const Recording parts = trace_step(job);
  EXPECT_EQ(parts.accumulation, 3);
  EXPECT_EQ(parts.micro_batch, 4);
  const Recording whole = trace_step(job_of("resnet18", 4));
  EXPECT_EQ(flops(parts, OperatorClass::convolution, Phase::forward),
            3 * flops(whole, OperatorClass::convolution, Phase::forward));
  // One set of activations at a time, the other two gradients are added up.
  EXPECT_LT(peak_live_bytes(parts), peak_live_bytes(whole) + 3 * whole.parameter_bytes / 2);
}

TEST(TraceTest, RanksHandOverEveryGradientInBuckets) {
  const Recording recording = trace_step(job_of("resnet50", 8), {.ranks = 2, .steps = 2});
  EXPECT_EQ(recording.ranks, 2);
  EXPECT_EQ(recording.micro_batch, 4);
  EXPECT_EQ(bytes_born(recording, MemoryClass::gradients), recording.parameter_bytes);
  std::vector<int64_t> in_backward;
  std::set<int64_t> open;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::collective) {
      EXPECT_TRUE(open.insert(event.id).second);
      if (event.thread == 1) in_backward.push_back(event.bytes);
    } else if (event.kind == EventKind::wait) {
      EXPECT_EQ(open.erase(event.id), 1);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(std::accumulate(in_backward.begin(), in_backward.end(), int64_t{0}), 2 * recording.parameter_bytes);
  EXPECT_GT(in_backward.size(), 4);
}

TEST(TraceTest, TheMovingAverageHasAClassOfItsOwn) {
  auto job = job_of("resnet18", 4);
  job.training.ema_decay = 0.999;
  const Recording recording = trace_step(job);
  EXPECT_EQ(bytes_born(recording, MemoryClass::averages), bytes_born(recording, MemoryClass::weights));
}

TEST(TraceTest, AttentionTakesTheKernelOfTheGpu) {
  const auto job = job_of("vit_tiny_patch16_224", 4, spec::Precision::bf16);
  const Recording flash = trace_step(job, {.attention = Attention::flash});
  const Recording math = trace_step(job, {.attention = Attention::math});
  EXPECT_EQ(flash.attention, "flash");
  EXPECT_GT(flops(flash, OperatorClass::attention, Phase::forward), 0);
  EXPECT_EQ(flops(math, OperatorClass::attention, Phase::forward), 0);
  EXPECT_GT(peak_live_bytes(math), peak_live_bytes(flash));  // keeps the scores
}

TEST(TraceTest, RecomputedBlocksKeepTheirInputsAndRunAgainInBackward) {
  auto job = job_of("resnet50", 32);
  const Recording plain = trace_step(job);
  job.training.recompute = {"all"};
  const Recording recording = trace_step(job);
  EXPECT_LT(peak_live_bytes(recording), peak_live_bytes(plain) / 2);
  EXPECT_NEAR(flops(recording, OperatorClass::convolution, Phase::backward) /
                  flops(plain, OperatorClass::convolution, Phase::forward),
              1, 0.05);
  std::map<int64_t, int64_t> forward, backward;  // convolutions of each block
  for (const Event& event : recording.events) {
    if (event.kind != EventKind::run) continue;
    const auto& call = recording.operators[static_cast<size_t>(event.id)];
    if (call.kind == OperatorClass::convolution && call.phase == Phase::forward) ++forward[call.block];
    if (call.kind == OperatorClass::convolution_weight_gradient) ++backward[call.block];
  }
  EXPECT_EQ(forward, backward);
}

// Most bytes of a class that are alive at once.
int64_t most_alive(const Recording& recording, MemoryClass memory) {
  std::map<int64_t, int64_t> alive;
  int64_t bytes = 0, most = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth && event.memory == memory) bytes += alive[event.id] = event.bytes;
    if (event.kind == EventKind::death && alive.contains(event.id)) bytes -= alive[event.id];
    most = std::max(most, bytes);
  }
  return most;
}

// Two slots of the feeder take turns; of bytes there are floats besides.
TEST(TraceTest, PixelsLieOnTheGpuAsTheFeederKeepsThem) {
  const std::map<spec::Pixels, int64_t> bytes_of_a_value = {
      {spec::Pixels::fp32, 4}, {spec::Pixels::bf16, 2 * 2}, {spec::Pixels::uint8, 2 * 1 + 4}};
  for (const auto& [pixels, bytes] : bytes_of_a_value) {
    spec::Job job = job_of("resnet18", 4);
    job.data.pixels = pixels;
    const int64_t values = 4 * 3 * job.data.image_size.pixels();
    const auto found = static_cast<double>(most_alive(trace_step(job), MemoryClass::inputs));
    EXPECT_NEAR(found, static_cast<double>(values * bytes), 256) << name_of(pixels) << ": beside them targets";
  }
}

TEST(TraceTest, EvaluationKeepsNoActivations) {
  const auto job = job_of("resnet50", 32);
  const Recording recording = trace_evaluation(job, {.steps = 1});
  EXPECT_LT(peak_live_bytes(recording), peak_live_bytes(trace_step(job)) / 4);
  for (const auto& call : recording.operators) {
    EXPECT_TRUE(call.phase == Phase::evaluate || call.phase == Phase::setup) << call.name;
  }
  EXPECT_EQ(bytes_born(recording, MemoryClass::gradients), 0);
}

TEST(TraceTest, APhaseHasItsOwnStep) {
  const auto job = job_of("resnet18", 8);
  const int64_t head = 4 * (512 * 1000 + 1000);  // bytes
  const Recording whole = trace_step(job, {.steps = 1});
  spec::Phase phase;
  phase.train_from = "head";
  const Recording frozen = trace_step(job, {.steps = 1, .phase = phase});
  EXPECT_EQ(bytes_born(frozen, MemoryClass::gradients), head);
  EXPECT_EQ(frozen.parameters, whole.parameters);
  EXPECT_EQ(flops(frozen, OperatorClass::convolution, Phase::forward),
            flops(whole, OperatorClass::convolution, Phase::forward));
  EXPECT_EQ(flops(frozen, OperatorClass::convolution_weight_gradient, Phase::backward), 0);
  EXPECT_LT(peak_live_bytes(frozen), peak_live_bytes(whole) / 2);  // no activation outlives its block

  phase.cache_features = true;
  const Recording cached = trace_step(job, {.evaluation_rows = 8, .steps = 2, .phase = phase});
  EXPECT_EQ(bytes_born(cached, MemoryClass::gradients), 2 * head);
  for (const auto step : {Phase::forward, Phase::backward, Phase::evaluate}) {
    EXPECT_EQ(flops(cached, OperatorClass::convolution, step), 0);
  }
  EXPECT_GT(flops(cached, OperatorClass::matmul, Phase::evaluate), 0);
  EXPECT_NEAR(static_cast<double>(bytes_born(cached, MemoryClass::inputs)), 3 * 8 * 512 * 4, 600);  // and labels
}

TEST(TraceTest, ThePassThatFillsACacheRunsTheFrozenBlocksAlone) {
  const auto job = job_of("resnet18", 8);
  spec::Phase phase;
  phase.train_from = "head";
  phase.cache_features = true;
  const Recording all = trace_evaluation(job, {.steps = 1});
  const Recording fill = trace_evaluation(job, {.steps = 1, .phase = phase, .fills = true});
  const Recording head = trace_evaluation(job, {.steps = 1, .phase = phase});
  EXPECT_EQ(flops(fill, OperatorClass::convolution, Phase::evaluate),
            flops(all, OperatorClass::convolution, Phase::evaluate));
  EXPECT_EQ(flops(fill, OperatorClass::matmul, Phase::evaluate), 0);
  EXPECT_EQ(flops(head, OperatorClass::convolution, Phase::evaluate), 0);
  EXPECT_EQ(flops(head, OperatorClass::matmul, Phase::evaluate), flops(all, OperatorClass::matmul, Phase::evaluate));
}

int64_t collectives(const Recording& recording, forecast::CollectiveKind kind) {
  return std::count_if(recording.events.begin(), recording.events.end(), [&](const Event& event) {
    return event.kind == EventKind::collective && event.collective == kind;
  });
}

// Slices are passes of their own: of eight, three partial sums live beside the gradient of the last; of micro-batches
// one sum does.
TEST(TraceTest, ExecutesVirtualRanksWithTheirPartialSums) {
  spec::Job job = job_of("resnet18", 32);
  job.data.image_size = 64;
  job.training.virtual_ranks = 8;
  const Recording one = trace_step(job);
  EXPECT_EQ(one.micro_batch, 4);
  EXPECT_EQ(one.accumulation, 8);
  const Recording two = trace_step(job, {.ranks = 2});
  EXPECT_EQ(two.accumulation, 4);
  EXPECT_GT(collectives(two, forecast::CollectiveKind::all_to_all), 0);
  EXPECT_EQ(collectives(one, forecast::CollectiveKind::all_to_all), 0);
  job.training.virtual_ranks = 0;
  job.training.micro_batch = 4;
  const Recording plain = trace_step(job);
  EXPECT_EQ(flops(one, OperatorClass::convolution, Phase::forward),
            flops(plain, OperatorClass::convolution, Phase::forward));
  EXPECT_GT(peak_live_bytes(one), peak_live_bytes(plain) + 19 * one.parameter_bytes / 10);
  EXPECT_LT(peak_live_bytes(one), peak_live_bytes(plain) + 4 * one.parameter_bytes);
}

}  // namespace
}  // namespace lockstep::trace
