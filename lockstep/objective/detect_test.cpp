// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/detect.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::objective {
namespace {

using model::NamedTensors;

constexpr int64_t kCells = 4;  // of one row: a canvas of 32 x 128 pixels

spec::Job job() {
  spec::Job job;
  job.task = spec::Task::detect;
  job.data.image_size = {32, 128};
  return job;
}

NamedTensors outputs(int64_t rows) {
  return {{"confidence", at::zeros({rows, kCells, 2})},
          {"box", at::zeros({rows, kCells, 4})},
          {"confidence2", at::zeros({rows, kCells, 2})},
          {"delta", at::zeros({rows, kCells, 4})}};
}

NamedTensors fields(int64_t rows) {
  return {{"object", at::zeros({rows, kCells})},
          {"box", at::zeros({rows, kCells, 4})},
          {"mask", at::full({rows, kCells}, 1.0)}};
}

void set_box(const NamedTensors& named, const char* name, int64_t row, int64_t cell, const std::vector<float>& box) {
  for (int64_t i = 0; i < 4; ++i) named.at(name)[row][cell][i] = box[static_cast<size_t>(i)];
}

std::vector<double> parts(const NamedTensors& given, const NamedTensors& wanted) {
  std::vector<double> all;
  for (const at::Tensor& sum : make_detect(job())->sums(given, wanted)) all.push_back(sum.item<double>());
  return all;
}

TEST(DetectObjectiveTest, UndecidedLogitsCostALogOfTwoACell) {
  const auto found = parts(outputs(3), fields(3));
  EXPECT_NEAR(found[0], 3 * std::log(2.0), 1e-5);
  EXPECT_NEAR(found[1], 0, 1e-9);
  EXPECT_NEAR(found[2], 3 * 0.1 * std::log(2.0), 1e-5);
  const double all = make_detect(job())->loss(outputs(3), fields(3), {}).item<double>();
  EXPECT_NEAR(all, found[0] + found[1] + found[2] + found[3], 1e-6);
}

TEST(DetectObjectiveTest, ABoxCostsItsErrorsInPixelsAndTheCorrectedOneTheirSquaresUpTo100) {
  const NamedTensors given = outputs(1), wanted = fields(1);
  wanted.at("object")[0][2] = 1;
  set_box(wanted, "box", 0, 2, {3, -4, 40, 30});
  set_box(given, "box", 0, 2, {1, -4, 30, 31});       // 2 + 0 + 10 + 1
  set_box(given, "delta", 0, 2, {1, 0, -10, -1});     // then 1, 0, 20 (at most 10), 0
  set_box(given, "box", 0, 1, {500, 500, 500, 500});  // nobody asks this cell
  const auto found = parts(given, wanted);
  EXPECT_NEAR(found[1], 0.1 * 13 / kCells, 1e-6);
  EXPECT_NEAR(found[3], 0.1 * 0.03 * (1 + 100) / kCells, 1e-6);
}

// Of an object 40 wide and 20 high, less than a fifth of it away: 7 and 0 are, 8 and 0 are not, nor are 5 and 4.
TEST(DetectObjectiveTest, TheSecondConfidenceIsAskedWhetherTheFirstBoxWasNear) {
  const auto cost = [](float x, float y) {
    const NamedTensors given = outputs(1), wanted = fields(1);
    wanted.at("object")[0][0] = 1;
    set_box(wanted, "box", 0, 0, {0, 0, 40, 20});
    set_box(given, "box", 0, 0, {x, y, 40, 20});
    given.at("confidence2")[0][0][1] = 5;
    return parts(given, wanted)[2] * kCells / 0.1 - 3 * std::log(2.0);
  };
  const double yes = std::log1p(std::exp(-5.0)), no = std::log1p(std::exp(5.0));
  EXPECT_NEAR(cost(7, 0), yes, 1e-5);
  EXPECT_NEAR(cost(8.1F, 0), no, 1e-5);
  EXPECT_NEAR(cost(5, 4), no, 1e-5);
}

TEST(DetectObjectiveTest, MaskedCellsHaveNoPartInConfidencesAndBlankRowsInNothing) {
  const NamedTensors given = outputs(2), wanted = fields(2);
  wanted.at("mask")[0][1] = 0;
  wanted.at("mask")[1].fill_(0);
  const auto found = parts(given, wanted);
  EXPECT_NEAR(found[0], 0.75 * std::log(2.0), 1e-5);
  EXPECT_NEAR(found[2], 0.1 * 0.75 * std::log(2.0), 1e-5);
}

TEST(DetectObjectiveTest, SurestBoxesComeFirstAndTheirDoublesAreLeftOut) {
  const NamedTensors given = outputs(2);
  given.at("confidence2").select(2, 0).fill_(20);  // sure of nothing
  const auto sure = [&](int64_t row, int64_t cell, float logit, const std::vector<float>& box) {
    given.at("confidence2")[row][cell][0] = 0;
    given.at("confidence2")[row][cell][1] = logit;
    set_box(given, "box", row, cell, box);
  };
  sure(0, 0, 1, {0, 0, 20, 20});    // 6 .. 26
  sure(0, 1, 2, {-30, 0, 20, 20});  // 8 .. 28: the same object, surer
  sure(0, 3, 3, {0, 0, 20, 20});    // 102 .. 122
  sure(1, 0, 1, {0, 0, -5, 20});    // no box
  sure(1, 1, std::numeric_limits<float>::quiet_NaN(), {0, 0, 20, 20});
  set_box(given, "delta", 0, 3, {1, 2, 0, 0});
  const HostRows rows = make_detect(job())->scored(given);
  ASSERT_EQ(rows[0].name, "boxes");
  const auto value = [&](size_t output, int64_t row, int64_t i) { return rows[output].tensor[row][i].item<float>(); };
  EXPECT_NEAR(value(1, 0, 0), 1 / (1 + std::exp(-3.0)), 1e-5);
  EXPECT_NEAR(value(1, 0, 1), 1 / (1 + std::exp(-2.0)), 1e-5);
  EXPECT_EQ(value(1, 0, 2), 0);
  EXPECT_EQ(value(1, 1, 0), 0);
  EXPECT_EQ(value(2, 0, 1), 1);
  EXPECT_EQ(value(2, 0, 2), 0);
  const float expected[] = {103, 8, 123, 28, 8, 6, 28, 26};
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(value(0, 0, i), expected[i]) << i;
}

}  // namespace
}  // namespace lockstep::objective
