// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/nowcast.h"

#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "lockstep/task/radar/forecast_score.h"

namespace lockstep::objective {
namespace {

// Every loss is, sample by sample, the mean over the measured pixels of what the score pays for a pixel.
TEST(NowcastTest, TheLossIsThatOfTheScore) {
  at::Tensor output = at::rand({3, 2, 1, 4, 5}).requires_grad_(true);
  const at::Tensor targets = at::rand({3, 2, 1, 4, 5});
  targets[1].fill_(-1);  // could not be read
  targets[0][0][0][2].fill_(-1);
  for (const spec::ForecastLoss kind :
       {spec::ForecastLoss::mse, spec::ForecastLoss::mae, spec::ForecastLoss::weighted, spec::ForecastLoss::log_cosh}) {
    spec::Nowcast how;
    how.loss = kind;
    const task::PixelLoss of_pixel(how);
    double wanted = 0;
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0, count = 0;
      for (int64_t i = 0; i < 40; ++i) {
        const double seen = targets[row].flatten()[i].item<double>();
        if (seen < 0) continue;
        sum += of_pixel(output[row].flatten()[i].item<double>(), seen);
        ++count;
      }
      wanted += count > 0 ? sum / count : 0;
    }
    const auto nowcast = make_nowcast(how);
    const at::Tensor loss = nowcast->loss({{"forecast", output}}, {{"targets", targets}}, {});
    EXPECT_NEAR(loss.item<double>(), wanted, 1e-4 * wanted);
    output.mutable_grad() = at::Tensor();
    loss.backward();
    EXPECT_EQ(output.grad()[1].abs().sum().item<double>(), 0);
    EXPECT_EQ(output.grad()[0][0][0][2].abs().sum().item<double>(), 0);
    EXPECT_GT(output.grad()[2].abs().sum().item<double>(), 0);
  }
}

}  // namespace
}  // namespace lockstep::objective
