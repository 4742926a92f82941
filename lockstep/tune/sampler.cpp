// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/sampler.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/tune/sobol.h"
#include "lockstep/tune/tpe.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::text;

// Values from a point of the unit cube; those whose condition does not hold are left out.
Values at_point(const Space& space, const std::vector<double>& point) {
  Values values;
  for (size_t i = 0; i < space.size(); ++i) {
    if (is_active(space[i], space, values)) values[space[i].name] = space[i].distribution.at(point[i]);
  }
  return values;
}

Values draw_uniform(const Space& space, uint64_t seed, int64_t number) {
  base::Random random(base::derive_seed(seed, "tune.random"), 0, static_cast<uint64_t>(number));
  std::vector<double> point;
  for (size_t i = 0; i < space.size(); ++i) point.push_back(random.uniform());
  return at_point(space, point);
}

int64_t grid_points(const Parameter& parameter) {
  const int64_t cells = parameter.distribution.cells();
  if (parameter.points > 0) return cells > 0 ? std::min(cells, parameter.points) : parameter.points;
  if (cells > 0) return cells;
  throw Error(Blame::user, text("space.", parameter.name, ": a grid over a range without steps"),
              "\"points\": 5, or \"step\": 0.1");
}

// The i-th of n values: the ends of a range belong to it.
double grid_value(const Parameter& parameter, int64_t index, int64_t count) {
  const Distribution& distribution = parameter.distribution;
  if (count == distribution.cells()) return distribution.low + static_cast<double>(index) * distribution.step;
  const double share = count > 1 ? static_cast<double>(index) / static_cast<double>(count - 1) : 0.5;
  if (distribution.log) {
    const double value = distribution.low * std::pow(distribution.high / distribution.low, share);
    return distribution.step > 0 ? std::round(value) : value;
  }
  const double value = distribution.low + share * (distribution.high - distribution.low);
  return distribution.step > 0 ? distribution.at(distribution.unit_of(value)) : value;
}

// The combinations in order, the last parameter fastest; of those that differ only in parameters without effect one.
std::optional<Values> grid_at(const Space& space, int64_t number) {
  std::vector<int64_t> counts;
  for (const auto& parameter : space) counts.push_back(grid_points(parameter));
  const int64_t size = grid_size(space);
  const bool conditions = std::any_of(space.begin(), space.end(), [](const auto& one) { return !one.when.empty(); });
  int64_t found = conditions ? -1 : number - 1;
  for (int64_t combination = conditions ? 0 : number; combination < size; ++combination) {
    int64_t rest = combination;
    std::vector<int64_t> index(space.size());
    for (size_t i = space.size(); i-- > 0; rest /= counts[i]) index[i] = rest % counts[i];
    Values values;
    bool repeated = false;
    for (size_t i = 0; i < space.size(); ++i) {
      if (is_active(space[i], space, values)) {
        values[space[i].name] = grid_value(space[i], index[i], counts[i]);
      } else if (index[i] > 0) {
        repeated = true;
      }
    }
    if (!repeated && ++found == number) return values;
  }
  return std::nullopt;
}

}  // namespace

int64_t grid_size(const Space& space) {
  constexpr int64_t kMost = 1000000;
  int64_t size = 1;
  for (const auto& parameter : space) {
    size *= grid_points(parameter);
    if (size > kMost) {
      throw Error(Blame::user, text("the grid has more than ", kMost, " points"), "fewer points, or sampler tpe");
    }
  }
  return size;
}

std::optional<Values> sample(const SamplerOrder& order, const Space& space, const std::vector<Trial>& trials,
                             int64_t number) {
  if (order.sampler == spec::StudySampler::grid) return grid_at(space, number);
  if (order.sampler == spec::StudySampler::sobol) {
    if (static_cast<int64_t>(space.size()) > Sobol::kMostDimensions) {
      throw Error(Blame::user, text("sampler sobol: ", space.size(), " parameters"), "64 at most; or sampler random");
    }
    const Sobol sobol(static_cast<int64_t>(space.size()), order.seed);
    return at_point(space, sobol.point(static_cast<uint64_t>(number)));
  }
  if (order.sampler == spec::StudySampler::tpe) {
    const auto judged =
        std::count_if(trials.begin(), trials.end(), [](const Trial& trial) { return trial.is_judged(); });
    if (judged >= order.startup && judged > 0) return draw_tpe(space, trials, order.maximize, order.seed, number);
  }
  return draw_uniform(space, order.seed, number);
}

}  // namespace lockstep::tune
