// SPDX-License-Identifier: Apache-2.0
// Samplers and partitioning on functions whose answers are known:
//   tune_probe tpe|random|sobol FUNCTION TRIALS SEEDS      the best value of each seed, a line each
//   tune_probe partition CASE SEEDS [FIRST]                a line of JSON a seed: regions with truth, volume, interval
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numbers>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/tune/partition.h"
#include "lockstep/tune/sampler.h"

namespace {

using namespace lockstep;
using tune::Point;
using tune::Values;

double branin(const Values& v) {
  const double x = v.at("x"), y = v.at("y"), pi = std::numbers::pi;
  return std::pow(y - 5.1 * x * x / (4 * pi * pi) + 5 * x / pi - 6, 2) + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double hartmann6(const Values& v) {
  static const double a[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
  static const double p[4][6] = {{.1312, .1696, .5569, .0124, .8283, .5886},
                                 {.2329, .4135, .8307, .3736, .1004, .9991},
                                 {.2348, .1451, .3522, .2883, .3047, .6650},
                                 {.4047, .8828, .8732, .5743, .1091, .0381}};
  static const double c[4] = {1, 1.2, 3, 3.2};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    double inner = 0;
    for (int j = 0; j < 6; ++j) inner += a[i][j] * std::pow(v.at("x" + std::to_string(j)) - p[i][j], 2);
    sum -= c[i] * std::exp(-inner);
  }
  return sum;
}

double rosenbrock5(const Values& v) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    const double x = v.at("x" + std::to_string(i)), next = v.at("x" + std::to_string(i + 1));
    sum += 100 * std::pow(next - x * x, 2) + std::pow(1 - x, 2);
  }
  return sum;
}

double mixed(const Values& v) {
  static const double b[] = {-1, -3, -3.5, -2}, c[] = {0, 0.3, 0.8, 1.5};
  const auto o = static_cast<size_t>(v.at("o"));
  const double l = std::log2(v.at("B") / 64);
  return std::pow(std::log10(v.at("lr")) - b[o] - l / 6, 2) + 4 * std::pow(v.at("m") - 0.9, 2) +
         std::pow((v.at("n") - 7) / 4, 2) + std::pow(l / 4, 2) + c[o];
}

struct Function {
  std::string space;
  double (*value)(const Values&);
};

std::string cube(int dimensions, const char* range) {
  std::string all;
  for (int i = 0; i < dimensions; ++i) all += base::text(i ? ", " : "", "\"x", i, "\": {\"range\": ", range, "}");
  return "{" + all + "}";
}

Function function_of(const std::string& name) {
  if (name == "branin") return {R"({"x": {"range": [-5, 10]}, "y": {"range": [0, 15]}})", branin};
  if (name == "hartmann6") return {cube(6, "[0, 1]"), hartmann6};
  if (name == "rosenbrock5") return {cube(5, "[-5, 10]"), rosenbrock5};
  return {R"({"lr": {"log": [1e-5, 1]}, "m": {"range": [0, 0.99]}, "n": {"range": [1, 12], "integer": true},
             "B": {"log": [8, 512], "integer": true}, "o": {"choice": ["sgd", "adam", "rmsprop", "lamb"]}})",
          mixed};
}

void run_sampler(const std::string& sampler, const std::string& name, int64_t trials, uint64_t seeds) {
  const Function function = function_of(name);
  const auto study = spec::parse_study(base::parse_json(base::text("{\"space\": ", function.space, "}"), "study"));
  const auto space = tune::make_space(study, nullptr);
  const auto kind = sampler == "tpe"      ? spec::StudySampler::tpe
                    : sampler == "random" ? spec::StudySampler::random
                                          : spec::StudySampler::sobol;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    std::vector<tune::Trial> all;
    for (int64_t number = 0; number < trials; ++number) {
      tune::Trial trial;
      trial.id = trial.number = number;
      trial.values = *tune::sample({kind, seed, 10, false}, space, all, number);
      trial.objective = function.value(trial.values);
      trial.state = tune::TrialState::complete;
      all.push_back(std::move(trial));
    }
    std::printf("%.9g\n", *tune::best_of(all, false)->objective);
  }
}

struct Case {
  int64_t dimensions;
  std::function<std::string(const Point&)> label;
  std::map<std::string, double> truth;
};

bool inside(const Point& point, double low, double high) {
  return std::all_of(point.begin(), point.end(), [&](double one) { return one >= low && one < high; });
}

double radius(const Point& point) {
  double square = 0;
  for (const double one : point) square += (one - 0.5) * (one - 0.5);
  return std::sqrt(square);
}

// box-D: the lower corner of half the side; spheres-D: a ball in a ball; slab-D: a slab .01 thick; slabs-D: one label
// on two far slabs.
Case case_of(const std::string& name) {
  const size_t dash = name.rfind('-');
  const std::string kind = name.substr(0, dash);
  const auto d = static_cast<int64_t>(std::atoi(name.c_str() + dash + 1));
  const auto whole = static_cast<double>(d);
  if (kind == "box") {
    const double side = d > 5 ? 0.6 : 0.5, volume = std::pow(side, whole);
    return {d,
            [side](const Point& p) { return inside(p, 0, side) ? "box" : "rest"; },
            {{"box", volume}, {"rest", 1 - volume}}};
  }
  if (kind == "spheres") {
    const double small = d > 5 ? 0.46 : 0.3;  // of 0.3 it would be 1.5e-5 of the space in 10 dimensions
    const double inner = tune::unit_ball(d) * std::pow(small, whole), outer = tune::unit_ball(d) * std::pow(0.5, whole);
    return {d,
            [small](const Point& p) { return radius(p) < small ? "inner"
                                             : radius(p) < 0.5 ? "shell"
                                                               : "rest"; },
            {{"inner", inner}, {"shell", outer - inner}, {"rest", 1 - outer}}};
  }
  if (kind == "slab") {
    return {d,
            [](const Point& p) { return p[0] >= 0.7 && p[0] < 0.71 ? "slab" : "rest"; },
            {{"slab", 0.01}, {"rest", 0.99}}};
  }
  if (kind == "slabs") {
    return {
        d,
        [](const Point& p) { return (p[0] >= 0.1 && p[0] < 0.11) || (p[0] >= 0.9 && p[0] < 0.91) ? "slabs" : "rest"; },
        {{"slabs", 0.02}, {"rest", 0.98}}};
  }
  throw base::Error(base::Blame::user, "no case " + name, "box-5, spheres-3, slab-10, slabs-2");
}

void run_partition(const std::string& name, uint64_t seeds, uint64_t first) {
  const Case known = case_of(name);
  const spec::Partition settings;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const auto found = tune::partition_space(known.dimensions, settings, seed, [&](const std::vector<Point>& points) {
      std::vector<std::string> labels;
      labels.reserve(points.size());
      for (const auto& point : points) labels.push_back(known.label(point));
      return labels;
    });
    base::Json row = base::Json::object();
    row["seed"] = seed;
    row["evaluations"] = found.evaluations;
    base::Json& regions = row["regions"] = base::Json::array();
    for (const auto& [label, truth] : known.truth) {
      base::Json one = base::Json::object();
      one["label"] = label;
      one["truth"] = truth;
      one["volume"] = one["low"] = one["high"] = one["published"] = 0.0;
      for (const auto& region : found.regions) {
        if (region.label != label) continue;
        one["volume"] = region.volume;
        one["low"] = region.low;
        one["high"] = region.high;
        one["published"] = region.published;
      }
      regions.push_back(std::move(one));
    }
    std::printf("%s\n", row.dump(-1).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.at(0) == "partition") {
      run_partition(words.at(1), std::stoull(words.at(2)), words.size() > 3 ? std::stoull(words[3]) : 1);
    } else {
      run_sampler(words.at(0), words.at(1), std::stoll(words.at(2)), std::stoull(words.at(3)));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
