// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/spec/study.h"
#include "lockstep/tune/region.h"

namespace lockstep::tune {

// Parameter space partitioning: which parts of the space give which outcome (M. Pitt, W. Kim, D. Navarro, J. Myung,
// "Global model analysis by parameter space partitioning", Psychological Review 113, 57, 2006). A region is all that
// has one label. Random walks inside each region discover its neighbours, as published; they start from many Sobol
// points, and the volumes come from importance sampling, whose intervals hold (the published estimator, an ellipsoid
// from the walk's covariance, gives between 0 and twice the volume).

struct Region {
  std::string label;
  double volume = 0;  // share of the space
  double low = 0;     // of the interval, for all regions together
  double high = 0;
  double published = 0;  // by the published estimator: the ellipsoid of the walk's covariance
  Point centre = {};     // mean of the points that measured it, in the unit cube
  Point spread = {};     // their standard deviation, by dimension
  int64_t found_by = 0;  // points with this label
};

struct Partitioned {
  std::vector<Region> regions;  // largest first
  int64_t evaluations = 0;
  int64_t failures = 0;                                    // points that gave no label
  int64_t uniform = 0;                                     // independent uniform points among them
  double confidence = 0;                                   // of all intervals together
  std::vector<std::pair<Point, std::string>> sample = {};  // for pictures: uniform points with their labels

  // The probability that a region of this volume was missed: no uniform point fell into it.
  double missed(double volume) const;
  // The volume of which a region would have been found with this probability.
  double found_volume(double probability) const;
};

// The labels of these points, in their order; an empty one: the program gave none. Called with many at a time.
using Evaluate = std::function<std::vector<std::string>(const std::vector<Point>&)>;

// The points asked for depend on the seed and on the labels alone: whoever evaluates them, on however many cores, and
// however often it is begun again with a memory of the labels, gets the same result.
Partitioned partition_space(int64_t dimensions, const spec::Partition& settings, uint64_t seed,
                            const Evaluate& evaluate);

// How many evaluations it will take with so many regions, about.
int64_t expected_evaluations(int64_t dimensions, const spec::Partition& settings, int64_t regions);

}  // namespace lockstep::tune
