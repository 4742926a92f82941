// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/tune/space.h"

namespace lockstep::tune {

// A kernel for each observed value of one parameter, and a wide one in the middle, the prior, which is the last: normal
// distributions cut off at the ends of the range, of choices a share for the one observed. Their widths are the larger
// gap to a neighbour, of the outermost two the inner one, within [range / min(100, n + 2), range] (Optuna 5.0).
// `distribution` must outlive it.
class Kernels {
 public:
  Kernels(const Distribution& distribution, const std::vector<double>& observed);

  double draw(size_t kernel, base::Random& random) const;
  // Adds the logarithm of each kernel's density (of steps: its mass) at the value.
  void add_log_density(double value, std::vector<double>& sums) const;
  const std::vector<double>& widths() const { return widths_; }

 private:
  double warp(double value) const;
  void set_widths();
  void set_peaks();
  void find_kinds();
  void add_choice(double value, std::vector<double>& sums) const;
  void add_cells(double value, std::vector<double>& sums) const;

  // Of a parameter with steps: kernels with the same centre and width are one.
  struct Kind {
    double centre = 0;
    double width = 0;
    double log_mass = 0;
  };

  const Distribution& distribution_;
  size_t count_ = 0;  // with the prior
  double low_ = 0;
  double high_ = 0;
  std::vector<double> centres_;  // of a choice: its index; -1: the prior
  std::vector<double> widths_;
  std::vector<double> scales_;    // 1 / width
  std::vector<double> log_mass_;  // inside the range
  std::vector<double> log_peak_;  // of the density, at the centre
  std::vector<Kind> kinds_;
  std::vector<uint32_t> kind_;  // by kernel
};

double normal_cdf(double z);
double normal_quantile(double p);  // REQUIRES: 0 < p < 1

}  // namespace lockstep::tune
