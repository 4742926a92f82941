// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/spec/choice.h"

namespace lockstep::forecast {

// Sums over tables that somebody measured: what scaling is in them, and what their words can mean.

// One row. 0: the table does not say.
struct ScalingRow {
  int64_t gpus = 1;
  int64_t nodes = 0;
  double batch = 0;  // as the table has it
  double steps = 0;
  double low_hours = 0;  // a range, or the same twice
  double high_hours = 0;
  double rate = 0;         // samples per second, as the table has it
  double low_samples = 0;  // of the dataset, a range or the same twice
  double high_samples = 0;

  double hours() const { return (low_hours + high_hours) / 2; }
  double samples() const { return (low_samples + high_samples) / 2; }
};

// Share of the rate that `gpus` would have if each were as fast as in the base row.
double scaling_efficiency(double rate, int64_t gpus, double base_rate, int64_t base_gpus);
// Samples per second from steps of `batch` samples on each GPU. REQUIRES: steps and hours are stated.
double rate_from_steps(const ScalingRow& row);

// What remains of a workflow's time when a share of it becomes `speed_up` times faster (Amdahl's law).
double remaining_time(double share, double speed_up);

// What a column called "batch" can mean in a table of trainings of so many epochs.
//   global_batch      samples of a step: every epoch shows the whole dataset, whatever the batch
//   images_per_epoch  samples that an epoch shows, whatever the dataset
//   steps_per_epoch   steps of an epoch, one sample on each GPU
LOCKSTEP_CHOICE(Reading, global_batch, images_per_epoch, steps_per_epoch)

double samples_shown(const ScalingRow& row, Reading reading, double epochs);

// One rate for each GPU of all rows, and how far the rows are from it. Factors: fitted hours / stated hours.
struct ReadingFit {
  Reading reading = Reading::global_batch;
  double rate_per_gpu = 0;             // samples per second: the geometric mean of the rows
  std::vector<double> row_rates = {};  // samples per second and GPU of each row
  std::vector<double> factors = {};
  double spread = 1;  // e to the root of the mean squared logarithm of the factors; 1: it explains every row

  // The same with a loss for each doubling of the GPUs, the second and last parameter.
  double rate_of_one = 0;
  double kept_per_doubling = 1;
  std::vector<double> doubling_factors = {};
  double doubling_spread = 1;
};
// REQUIRES: every row has hours and what the reading takes from it.
ReadingFit fit_reading(const std::vector<ScalingRow>& rows, Reading reading, double epochs);

}  // namespace lockstep::forecast
