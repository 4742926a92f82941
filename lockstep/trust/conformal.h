// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/trust/class_rows.h"
#include "lockstep/trust/distributions.h"

// Split conformal prediction: sets of classes that hold the right one with a chosen probability, whatever the network,
// as long as new samples come from where the calibration rows came from (Vovk et al.; Angelopoulos and Bates 2021).
namespace lockstep::trust {

// lac: all classes that are probable enough, the smallest sets on average (Sadinle et al. 2019). aps: the most probable
// ones up to a mass (Romano et al. 2020, randomised): larger sets, of more equal coverage over easy and hard samples.
enum class SetMethod { lac, aps };

// How strange a class is for a sample, in [0, 1]. `u`, uniform in [0, 1), is the sample's own; lac does without it.
double conformal_score(std::span<const double> probabilities, int64_t label, SetMethod method, double u = 0);

// A number in [0, 1) that belongs to a row alone, so that the same image has the same set everywhere.
double draw_for(std::span<const float> logits);

// The scores of the right classes, ascending.
std::vector<double> calibration_scores(const ClassRows& rows, double temperature, SetMethod method);

// The k-th smallest of `scores` (ascending), k = ceil((n + 1) coverage): a set of all classes that score no more has
// the right one with at least this probability. None: k > n, these rows are too few for it.
std::optional<double> conformal_threshold(std::span<const double> scores, double coverage);
// The fewest rows with which that threshold exists.
int64_t fewest_rows(double coverage);

// The classes that score no more than `threshold`, most probable first. Never empty: the first class always belongs.
std::vector<int64_t> prediction_set(std::span<const double> probabilities, double threshold, SetMethod method,
                                    double u = 0);

// Within which `level` of all calibrations bring their coverage, seen on `tested` further rows: as a share. The
// coverage itself is Beta(k, n + 1 - k) over calibrations of n rows.
Interval coverage_interval(int64_t calibrated, int64_t tested, double coverage, double level);

}  // namespace lockstep::trust
