// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/partition.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/tune/parzen.h"
#include "lockstep/tune/sobol.h"

namespace lockstep::tune {
namespace {

constexpr double kInflation = 1.5;     // of an ellipsoid that shall cover its region
constexpr double kUniformShare = 0.3;  // of the points that measure
constexpr double kAcceptance = 0.2;    // of steps, at which a walk covers its region fastest (Kim's psp.m aims at it)
constexpr int64_t kRounds = 4;         // in which new regions may turn up while volumes are measured
constexpr size_t kMostRegions = 1000;

bool is_inside(const Point& point) {
  return std::all_of(point.begin(), point.end(), [](double one) { return one >= 0 && one < 1; });
}

// One random walk.
struct Walk {
  Point at;
  double scale = 0.1;  // of a step; as psp.m begins
  int64_t steps = 0;
  int64_t accepted = 0;
  base::Random random;
};

struct Explored {
  std::string label;
  Moments moments;
  std::vector<Walk> walks = {};
  std::vector<Point> starts = {};  // points known to lie in it
  bool walked = false;
};

// How long each walk of a region is: psp.m's counts grow by 1.2 a dimension.
int64_t walk_steps(int64_t dimensions, const spec::Partition& settings) {
  const double all = 600 * std::pow(1.2, static_cast<double>(dimensions));
  return std::max<int64_t>(20, static_cast<int64_t>(all / static_cast<double>(settings.chains)));
}

class Partitioner {
 public:
  Partitioner(int64_t dimensions, const spec::Partition& settings, uint64_t seed, const Evaluate& evaluate)
      : dimensions_(dimensions), settings_(settings), seed_(seed), evaluate_(evaluate) {}

  Partitioned run() {
    look_around();
    Partitioned result;
    for (int64_t round = 0; round < kRounds; ++round) {
      walk();
      const size_t known = regions_.size();
      result = measure(round);
      if (regions_.size() == known) break;  // all of them had an ellipsoid of their own
    }
    return result;
  }

 private:
  size_t d() const { return static_cast<size_t>(dimensions_); }

  std::vector<std::string> ask(const std::vector<Point>& points) {
    std::vector<std::string> labels = evaluate_(points);
    base::ensure(labels.size() == points.size(), "each point has an answer");
    evaluations_ += static_cast<int64_t>(points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      if (labels[i].empty()) {
        ++failures_;
      } else {
        note(points[i], labels[i]);
      }
    }
    return labels;
  }

  // A label that was not seen before begins a region.
  void note(const Point& point, const std::string& label) {
    const auto known = index_.find(label);
    if (known == index_.end()) {
      if (regions_.size() >= kMostRegions) {
        throw base::Error(base::Blame::user, base::text("more than ", kMostRegions, " different labels"),
                          "the program shall print a pattern of its outcome, not the outcome");
      }
      index_[label] = regions_.size();
      regions_.push_back({label, Moments(d())});
    }
    Explored& region = regions_[index_[label]];
    constexpr size_t kMostStarts = 4096;
    if (region.starts.size() < kMostStarts) region.starts.push_back(point);
    ++found_[label];
  }

  void look_around() {
    const Sobol sobol(dimensions_, seed_);
    std::vector<Point> points;
    for (int64_t i = 0; i < settings_.starts; ++i) points.push_back(sobol.point(static_cast<uint64_t>(i)));
    ask(points);
    for (auto& region : regions_) {
      for (const auto& point : region.starts) region.moments.add(point);
    }
  }

  // All regions that have not been walked yet, one step of every walk at a time; those that turn up meanwhile too.
  void walk() {
    const int64_t steps = walk_steps(dimensions_, settings_);
    while (true) {
      std::vector<std::pair<size_t, size_t>> movers;  // region, walk
      std::vector<Point> proposals;
      for (size_t r = 0; r < regions_.size(); ++r) {
        begin(regions_[r], r);
        for (size_t w = 0; w < regions_[r].walks.size(); ++w) {
          Walk& walk = regions_[r].walks[w];
          if (walk.steps >= steps) continue;
          movers.emplace_back(r, w);
          proposals.push_back(propose(regions_[r], walk));
        }
      }
      if (movers.empty()) return;
      // A step out of the space stays where it is without asking.
      std::vector<Point> asked;
      for (const auto& point : proposals) {
        if (is_inside(point)) asked.push_back(point);
      }
      const std::vector<std::string> labels = asked.empty() ? std::vector<std::string>{} : ask(asked);
      size_t next = 0;
      for (size_t i = 0; i < movers.size(); ++i) {
        const bool inside = is_inside(proposals[i]);
        const std::string label = inside ? labels[next++] : "";
        Explored& region = regions_[movers[i].first];
        move(region, region.walks[movers[i].second], proposals[i], label == region.label);
      }
    }
  }

  void begin(Explored& region, size_t number) const {
    if (region.walked) return;
    region.walked = true;
    // Where the region is known by several points, from points that lie apart.
    const size_t walks = std::min(region.starts.size(), static_cast<size_t>(settings_.chains));
    for (size_t w = 0; w < walks; ++w) {
      Walk walk{.at = region.starts[w * region.starts.size() / walks],
                .random = base::Random(base::derive_seed(seed_, "partition.walk"), static_cast<uint32_t>(number),
                                       static_cast<uint64_t>(w))};
      region.walks.push_back(std::move(walk));
    }
    while (region.walks.size() < static_cast<size_t>(settings_.chains)) {
      Walk walk = region.walks.front();
      walk.random = base::Random(base::derive_seed(seed_, "partition.walk"), static_cast<uint32_t>(number),
                                 static_cast<uint64_t>(region.walks.size()));
      region.walks.push_back(std::move(walk));
    }
  }

  // In a ball at first, as published; by the region's own shape when enough is known of it, since a ball that fits a
  // thin slab gets nowhere.
  Point propose(const Explored& region, Walk& walk) const {
    Point point = walk.at;
    const bool shaped = region.moments.count() > 10 * dimensions_;
    const Point step = shaped ? Ellipsoid(region.moments, 1).draw_step(walk.random, walk.scale) : ball_step(walk);
    for (size_t i = 0; i < d(); ++i) point[i] += step[i];
    return point;
  }

  Point ball_step(Walk& walk) const {
    Point step = draw_in_ball(d(), walk.random);
    for (double& one : step) one *= walk.scale;
    return step;
  }

  static void move(Explored& region, Walk& walk, const Point& proposal, bool accepted) {
    ++walk.steps;
    if (accepted) {
      ++walk.accepted;
      walk.at = proposal;
    }
    // Towards the wanted share of accepted steps, ever more slowly (Robbins and Monro).
    const double pace = 1 / std::sqrt(static_cast<double>(walk.steps));
    walk.scale *= std::exp(pace * ((accepted ? 1.0 : 0.0) - kAcceptance));
    walk.scale = std::clamp(walk.scale, 1e-6, 4.0);
    region.moments.add(walk.at);
  }

  // Sums over the points of one label, each by its weight: where the region lies.
  struct Place {
    double weight = 0;
    Point first;   // of the coordinates
    Point second;  // of their squares
  };

  // Of one stratum: sums of weight and square, by region.
  struct Stratum {
    int64_t points = 0;
    std::map<std::string, std::pair<double, double>> sums = {};
  };

  Partitioned measure(int64_t round) {
    std::vector<Ellipsoid> ellipsoids;
    for (const auto& region : regions_) ellipsoids.emplace_back(region.moments, kInflation);
    const auto strata = static_cast<int64_t>(ellipsoids.size()) + 1;
    std::vector<int64_t> counts;
    const auto uniform = static_cast<int64_t>(kUniformShare * static_cast<double>(settings_.points));
    counts.push_back(std::max<int64_t>(2, uniform));
    for (int64_t s = 1; s < strata; ++s) {
      counts.push_back(std::max<int64_t>(2, (settings_.points - uniform) / (strata - 1)));
    }
    int64_t total = 0;
    for (const int64_t count : counts) total += count;
    base::Random random(base::derive_seed(seed_, "partition.measure"), static_cast<uint32_t>(round));
    std::vector<Point> points;
    std::vector<size_t> stratum_of;
    std::vector<size_t> asked;  // of the points, those inside the space
    for (size_t s = 0; s < counts.size(); ++s) {
      for (int64_t i = 0; i < counts[s]; ++i) {
        Point point(d());
        if (s == 0) {
          for (double& one : point) one = random.uniform();
        } else {
          point = ellipsoids[s - 1].draw(random);
        }
        if (is_inside(point)) asked.push_back(points.size());
        points.push_back(std::move(point));
        stratum_of.push_back(s);
      }
    }
    std::vector<std::string> labels(points.size());
    ask_in_pieces(points, asked, labels);
    return weigh(points, stratum_of, labels, counts, ellipsoids, total);
  }

  // So that a kill loses little, and progress can be seen.
  void ask_in_pieces(const std::vector<Point>& points, const std::vector<size_t>& asked,
                     std::vector<std::string>& labels) {
    constexpr size_t kPiece = 512;
    for (size_t from = 0; from < asked.size(); from += kPiece) {
      const size_t to = std::min(asked.size(), from + kPiece);
      std::vector<Point> piece;
      for (size_t i = from; i < to; ++i) piece.push_back(points[asked[i]]);
      const auto answers = ask(piece);
      for (size_t i = from; i < to; ++i) labels[asked[i]] = answers[i - from];
    }
  }

  Partitioned weigh(const std::vector<Point>& points, const std::vector<size_t>& stratum_of,
                    const std::vector<std::string>& labels, const std::vector<int64_t>& counts,
                    const std::vector<Ellipsoid>& ellipsoids, int64_t total) {
    std::vector<Stratum> strata(counts.size());
    for (size_t s = 0; s < counts.size(); ++s) strata[s].points = counts[s];
    std::map<std::string, Place> places;
    for (size_t i = 0; i < points.size(); ++i) {
      if (labels[i].empty()) continue;
      // The density of the whole mixture at the point ("balance heuristic"): any stratum's points count alike.
      double density = static_cast<double>(counts[0]) / static_cast<double>(total);
      for (size_t s = 0; s < ellipsoids.size(); ++s) {
        if (!ellipsoids[s].contains(points[i])) continue;
        density += static_cast<double>(counts[s + 1]) / static_cast<double>(total) / ellipsoids[s].volume();
      }
      auto& [sum, squares] = strata[stratum_of[i]].sums[labels[i]];
      sum += 1 / density;
      squares += 1 / density / density;
      Place& place = places.try_emplace(labels[i], Place{0, Point(d(), 0.0), Point(d(), 0.0)}).first->second;
      place.weight += 1 / density;
      for (size_t k = 0; k < d(); ++k) {
        place.first[k] += points[i][k] / density;
        place.second[k] += points[i][k] * points[i][k] / density;
      }
    }
    Partitioned result;
    result.evaluations = evaluations_;
    result.failures = failures_;
    uniform_ += counts[0];
    result.uniform = uniform_;
    result.confidence = settings_.confidence;
    // Each alone wider, so that all of them hold at once (Bonferroni).
    const double z = normal_quantile(1 - (1 - settings_.confidence) / 2 / static_cast<double>(regions_.size()));
    for (const auto& explored : regions_) {
      Region region;
      region.label = explored.label;
      region.found_by = found_[explored.label];
      double variance = 0;
      for (const auto& stratum : strata) {
        const auto sums = stratum.sums.find(explored.label);
        if (sums == stratum.sums.end()) continue;
        const auto n = static_cast<double>(stratum.points);
        const double mean = sums->second.first / n;
        region.volume += sums->second.first / static_cast<double>(total);
        variance += n / (n - 1) * (sums->second.second - n * mean * mean) / static_cast<double>(total) /
                    static_cast<double>(total);
      }
      const double width = z * std::sqrt(std::max(0.0, variance));
      region.low = std::max(0.0, region.volume - width);
      region.high = std::min(1.0, region.volume + width);
      region.published = Ellipsoid(explored.moments, 1).volume();
      set_shape(region, places[explored.label], explored);
      result.regions.push_back(std::move(region));
    }
    std::stable_sort(result.regions.begin(), result.regions.end(),
                     [](const Region& a, const Region& b) { return a.volume > b.volume; });
    for (size_t i = 0; i < points.size() && stratum_of[i] == 0; ++i) {
      if (!labels[i].empty()) result.sample.emplace_back(points[i], labels[i]);
    }
    return result;
  }

  static void set_shape(Region& region, const Place& place, const Explored& explored) {
    region.centre = explored.moments.mean();
    const size_t d = region.centre.size();
    const auto covariance = explored.moments.covariance();
    for (size_t i = 0; i < d; ++i) {
      double variance = covariance[i * d + i];
      if (place.weight > 0) {
        region.centre[i] = place.first[i] / place.weight;
        variance = place.second[i] / place.weight - region.centre[i] * region.centre[i];
      }
      region.spread.push_back(std::sqrt(std::max(0.0, variance)));
    }
  }

  int64_t dimensions_;
  const spec::Partition& settings_;
  uint64_t seed_;
  const Evaluate& evaluate_;
  std::vector<Explored> regions_;  // in the order in which they were found
  std::map<std::string, size_t> index_;
  std::map<std::string, int64_t> found_;
  int64_t evaluations_ = 0;
  int64_t failures_ = 0;
  int64_t uniform_ = 0;
};

}  // namespace

double Partitioned::missed(double volume) const {
  return std::exp(static_cast<double>(uniform) * std::log1p(-volume));
}

double Partitioned::found_volume(double probability) const {
  return uniform > 0 ? -std::expm1(std::log1p(-probability) / static_cast<double>(uniform)) : 1;
}

Partitioned partition_space(int64_t dimensions, const spec::Partition& settings, uint64_t seed,
                            const Evaluate& evaluate) {
  return Partitioner(dimensions, settings, seed, evaluate).run();
}

int64_t expected_evaluations(int64_t dimensions, const spec::Partition& settings, int64_t regions) {
  return settings.starts + regions * settings.chains * walk_steps(dimensions, settings) + settings.points;
}

}  // namespace lockstep::tune
