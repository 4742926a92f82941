// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/nowcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::task {
namespace {

spec::Job strip_job() {
  spec::Job job;
  job.task = spec::Task::nowcast;
  job.data.image_size = {2, 3};
  job.data.augment = spec::Augment::none;
  job.nowcast.inputs = 2;
  job.nowcast.outputs = 1;
  return job;
}

std::string strip_of(int64_t count) {
  Frames frames{count, 2, 3, {}};
  for (int64_t i = 0; i < 6 * count; ++i) frames.codes.push_back(static_cast<uint8_t>(i == 1 || i == 13 ? 1 : 60 + i));
  return strip_file(frames);
}

struct StripRow {
  std::vector<float> frames = std::vector<float>(12), targets = std::vector<float>(6);
  void encode(Encoder& encoder, const std::string& strip, const std::optional<base::Random>& random = std::nullopt) {
    std::byte* const out[] = {reinterpret_cast<std::byte*>(frames.data()),
                              reinterpret_cast<std::byte*>(targets.data())};
    encoder.encode({.image = std::as_bytes(std::span(strip.data(), strip.size()))}, random, out);
  }
};

TEST(NowcastTest, AStripBecomesFramesAndTargets) {
  const auto task = make_nowcast(strip_job());
  EXPECT_EQ(task->fields()[0].shape, (std::vector<int64_t>{2, 1, 2, 3}));
  StripRow row;
  row.encode(*task->encoder(), strip_of(3));
  EXPECT_EQ(row.frames[0], pixel_of_code(60));
  EXPECT_EQ(row.frames[1], 0);  // not measured: the network sees nothing
  EXPECT_EQ(row.targets[0], pixel_of_code(72));
  EXPECT_EQ(row.targets[1], kMissingPixel);  // and is not asked
}

TEST(NowcastTest, HalfOfTheSequencesAreMirrored) {
  spec::Job job = strip_job();
  job.data.augment = spec::Augment::standard;
  const auto task = make_nowcast(job);
  int mirrored = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    StripRow row;
    row.encode(*task->encoder(), strip_of(3), base::Random(1, 0, i));
    if (row.frames[2] == pixel_of_code(60)) ++mirrored;
  }
  EXPECT_GT(mirrored, 3);
  EXPECT_LT(mirrored, 17);
}

TEST(NowcastTest, APredictionNeedsNoTargets) {
  const auto task = make_nowcast(strip_job());
  StripRow row;
  row.encode(*task->encoder(), strip_of(2));
  EXPECT_THAT(row.targets, testing::Each(kMissingPixel));
  try {
    row.encode(*task->encoder(), strip_of(1));
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("a sequence of 1 frames"));
  }
}

TEST(NowcastTest, ARecordTellsRainAndIsDrawn) {
  const auto task = make_nowcast(strip_job());
  const std::vector<int64_t> ids{0};
  const std::vector<float> seen(12, 0.2F), forecast{0, 0, 0, 0.9F, 0.9F, 0};
  const auto bytes = std::as_bytes(std::span(seen));
  const std::vector<FieldValues> fields{{task->fields()[0], {bytes.begin(), bytes.end()}}};
  const base::Json record = task->record({ids, fields, {{"forecast", 6, forecast}}}, 0, 5);
  EXPECT_NEAR(record.at("rain_area").items()[0].as_double(), 1.0 / 3, 1e-9);
  EXPECT_EQ(record.at("peak_dbz").items()[0].as_double(), 53);
  EXPECT_THAT(task->line(record), testing::HasSubstr("in 5 min 33.3 % of the area, peak 53.0 dBZ"));
  EXPECT_EQ(task->cells(record, 5).size(), task->columns(5).size());
  image::Image image(3, 4);
  EXPECT_TRUE(task->draw(record, image));
  EXPECT_GT(image.width, 90);
  EXPECT_TRUE(task->animation(record).starts_with("\x89PNG"));
  EXPECT_FALSE(task->draw(base::Json::object(), image));  // a record of somebody who left the strips out
  EXPECT_EQ(task->animation(base::Json::object()), "");
}

}  // namespace
}  // namespace lockstep::task
