// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/nowcast_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

constexpr int64_t kRainSide = 24;

spec::Job rain_job() {
  spec::Job job;
  job.task = spec::Task::nowcast;
  job.data.image_size = kRainSide;
  job.nowcast.inputs = 3;
  job.nowcast.outputs = 4;
  job.nowcast.thresholds = {0.5, 5};
  job.nowcast.scales = {3};
  return job;
}

// A cell that moves by one pixel a frame; of sample `id` it stands elsewhere.
std::vector<float> moving_cell(int64_t id, int64_t from, int64_t count) {
  std::vector<float> frames;
  for (int64_t t = from; t < from + count; ++t) {
    for (int64_t y = 0; y < kRainSide; ++y) {
      for (int64_t x = 0; x < kRainSide; ++x) {
        const auto dx = static_cast<double>(x - 8 - id - t), dy = static_cast<double>(y - 12 + id);
        frames.push_back(static_cast<float>(0.8 * std::exp(-(dx * dx + dy * dy) / 18)));
      }
    }
  }
  return frames;
}

struct RainBatch {
  std::vector<int64_t> ids;
  std::vector<float> forecast;
  std::vector<FieldValues> fields;
};

RainBatch rain_batch(const std::vector<int64_t>& ids, double off) {
  RainBatch batch{ids, {}, {}};
  std::vector<float> frames, targets;
  for (const int64_t id : ids) {
    for (const float value : moving_cell(id, 0, 3)) frames.push_back(value);
    for (const float value : moving_cell(id, 3, 4)) {
      targets.push_back(value);
      batch.forecast.push_back(value + static_cast<float>(off));
    }
  }
  const auto field = [](const char* name, int64_t count, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return FieldValues{{.name = name, .shape = {count, 1, kRainSide, kRainSide}}, {bytes.begin(), bytes.end()}};
  };
  batch.fields = {field("frames", 3, frames), field("targets", 4, targets)};
  return batch;
}

void add_batch(Score& score, const RainBatch& batch) {
  score.add({batch.ids, batch.fields, {{"forecast", 4 * kRainSide * kRainSide, batch.forecast}}});
}

TEST(NowcastScoreTest, APerfectForecastBeatsPersistenceAndFlow) {
  const auto score = make_nowcast_score(rain_job(), 2);
  add_batch(*score, rain_batch({0, 1, 2}, 0));
  EXPECT_EQ(score->samples(), 3);
  EXPECT_EQ(score->headline().value, 1);
  const base::Json figures = score->figures();
  EXPECT_EQ(figures.at("mse").as_double(), 0);
  EXPECT_LT(figures.at("csi_persistence").as_double(), 0.8);
  EXPECT_GT(figures.at("csi_flow").as_double(), figures.at("csi_persistence").as_double());
  const base::Json all = score->to_json();
  EXPECT_EQ(all.at("methods").at("network").at("csi").items()[0].items().size(), 4U);
  EXPECT_EQ(all.at("worst").size(), 2U);
  EXPECT_GE(all.at("curves").size(), 3U);
}

TEST(NowcastScoreTest, RanksAddUpToTheSame) {
  const spec::Job job = rain_job();
  const auto all = make_nowcast_score(job, 2), one = make_nowcast_score(job, 2), other = make_nowcast_score(job, 2);
  const RainBatch a = rain_batch({3, 0}, 0.02), b = rain_batch({1, 2}, 0.1);
  add_batch(*all, a);
  add_batch(*all, b);
  add_batch(*one, b);
  add_batch(*other, a);
  one->merge(other->pack());
  EXPECT_EQ(one->to_json(), all->to_json());
  EXPECT_EQ(all->worst(), (std::vector<int64_t>{2, 1}));
}

TEST(NowcastScoreTest, AForecastThatIsNoNumberIsTheBestOfNothing) {
  const auto score = make_nowcast_score(rain_job(), 1);
  add_batch(*score, rain_batch({0}, std::nan("")));
  EXPECT_FALSE(score->is_sound());
}

TEST(NowcastScoreTest, WhatCouldNotBeReadCountsForNothing) {
  const auto score = make_nowcast_score(rain_job(), 1);
  RainBatch batch = rain_batch({0}, 0);
  std::fill_n(reinterpret_cast<float*>(batch.fields[1].bytes.data()), 4 * kRainSide * kRainSide, kMissingPixel);
  add_batch(*score, batch);
  EXPECT_EQ(score->samples(), 0);
}

}  // namespace
}  // namespace lockstep::task
