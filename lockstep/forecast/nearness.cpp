// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/nearness.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

constexpr double kMicrosecond = 1e-6;
constexpr double kShortest = 1e-8;  // seconds of roofline time: below, nothing but latency is left
constexpr size_t kNeighbours = 4;
constexpr double kRounding = 1 + 1e-12;  // sums of other orders are larger by less
constexpr double kSoftening = 0.01;      // of a squared distance: below a tenth of an octave samples count alike

// An octave of these, in units of distance. Found on 10,600 operators of 13 networks on an H200, each network foretold
// without its own samples: the result hardly depends on them (median error of a step's device time 2.0 to 2.6 %).
constexpr double kPerSize = 0.6;     // roofline time: saturation
constexpr double kPerBalance = 0.4;  // operations against bytes
constexpr double kPerChannel = 0.5;  // tensor cores unused below some width
constexpr double kPerSide = 0.25;    // rows, tokens, pixels, kernels
constexpr double kPerWidth = 1;      // of a row that is normalised or summed: decides how many threads share it
constexpr double kPerTraffic = 0.5;  // bytes for each value: strides, further inputs, wider results
// Other kernels, other layout, another operator of the class.
constexpr double kOtherFamily = 3;
constexpr double kOtherName = 1.5;
constexpr double kOtherLayout = 4;

double octaves(double value) {
  return std::log2(std::max(value, 1.0));
}

bool is_convolution(OperatorClass kind) {
  return kind == OperatorClass::convolution || kind == OperatorClass::convolution_input_gradient ||
         kind == OperatorClass::convolution_weight_gradient;
}

bool is_attention(OperatorClass kind) {
  return kind == OperatorClass::attention || kind == OperatorClass::attention_gradient;
}

bool works_on_rows(OperatorClass kind) {
  return kind == OperatorClass::layer_norm || kind == OperatorClass::layer_norm_gradient ||
         kind == OperatorClass::reduction || kind == OperatorClass::softmax;
}

// Squared: fp16 and bf16 run the same kernels; tf32 uses the tensor cores too; fp32 does not.
double other_type(NumberType a, NumberType b) {
  if (a == b) return 0;
  const auto half = [](NumberType type) { return type == NumberType::bf16 || type == NumberType::fp16; };
  if (half(a) && half(b)) return 0.05;
  const auto tensor = [&](NumberType type) { return half(type) || type == NumberType::tf32; };
  return tensor(a) && tensor(b) ? 4 : 6;
}

}  // namespace

KernelFamily family_of(const Operator& op) {
  if (!is_convolution(op.kind) || op.shape.size() < 9) return KernelFamily::plain;
  const int64_t in = op.shape[1], groups = op.shape[8];
  if (groups > 1) return groups == in ? KernelFamily::depthwise : KernelFamily::grouped;
  if (in <= 4) return KernelFamily::stem;
  return op.shape[5] * op.shape[6] == 1 ? KernelFamily::pointwise : KernelFamily::spatial;
}

double size_seconds(const Operator& op, const Rates& rates) {
  return std::max(roofline(op, rates).seconds(), kShortest);
}

Coordinates coordinates_of(const Operator& op, const Rates& rates, Layout layout) {
  const Roofline bound = roofline(op, rates);
  Coordinates at{.family = family_of(op), .type = op.type, .layout = layout};
  at.name = std::hash<std::string>{}(op.name);
  at.x[0] = kPerSize * std::log2(size_seconds(op, rates) / kMicrosecond);
  if (bound.compute > 0 && bound.memory > 0) {
    at.x[1] = kPerBalance * std::clamp(std::log2(bound.compute / bound.memory), -5.0, 5.0);
  }
  const auto side = [&](size_t i) { return static_cast<double>(op.shape[i]); };
  const size_t sides = op.shape.size();
  if (is_convolution(op.kind) && sides >= 9) {
    at.x[2] = kPerChannel * octaves(side(1) / side(8));
    at.x[3] = kPerChannel * octaves(side(4) / side(8));
    at.x[4] = kPerSide * octaves(side(2) * side(3));
    at.x[5] = 2 * kPerSide * octaves(side(7));
    at.x[6] = kPerSide * octaves(side(5) * side(6));
    return at;
  }
  if (op.kind == OperatorClass::matmul && sides >= 4) {
    for (size_t i = 0; i < 4; ++i) at.x[2 + i] = kPerSide * octaves(side(i));
    return at;
  }
  double values = 1;
  for (size_t i = 0; i < sides; ++i) values *= std::max(1.0, side(i));
  if (sides > 0) at.x[4] = kPerTraffic * std::log2(std::max(1e-3, op.bytes / values));
  if (is_attention(op.kind) && sides >= 5) {
    at.x[2] = kPerSide * octaves(side(2));
    at.x[3] = kPerSide * octaves(side(4));
  } else if (sides >= 4) {  // [batch, channels, height, width]
    at.x[2] = kPerChannel * octaves(side(1));
    at.x[3] = kPerSide * octaves(side(2) * side(3));
  } else if (sides > 0) {
    at.x[2] = (works_on_rows(op.kind) ? kPerWidth : kPerChannel) * octaves(side(sides - 1));
  }
  return at;
}

namespace {

// Of operators that differ in nothing else; squared.
double other_kernel(const Coordinates& a, const Coordinates& b) {
  double sum = other_type(a.type, b.type);
  if (a.family != b.family) sum += kOtherFamily * kOtherFamily;
  if (a.layout != b.layout) sum += kOtherLayout * kOtherLayout;
  if (a.name != b.name) sum += kOtherName * kOtherName;
  return sum;
}

double distance_squared(const Coordinates& a, const Coordinates& b, double kernels) {
  double sum = kernels;
  for (size_t i = 0; i < a.x.size(); ++i) sum += (a.x[i] - b.x[i]) * (a.x[i] - b.x[i]);
  return sum;
}

}  // namespace

double distance_squared(const Coordinates& a, const Coordinates& b) {
  return distance_squared(a, b, other_kernel(a, b));
}

namespace {

// The samples nearest to a place.
class Neighbours {
 public:
  explicit Neighbours(const Coordinates& at) : at_(at) {}

  // A sample of another kernel, by `kernels`, and of another size is not among them by that alone.
  bool too_far(double kernels, double size) const {
    return count_ == kNeighbours && kernels + size * size > nearest_[count_ - 1].distance * kRounding;
  }

  void add(const SamplePoint& point, double kernels) {
    const double size = point.at.x[0] - at_.x[0];
    if (too_far(kernels, size)) return;
    const Neighbour one{distance_squared(point.at, at_, kernels), size, point.log_efficiency};
    if (count_ == kNeighbours && !(one < nearest_[count_ - 1])) return;
    size_t position = count_ < kNeighbours ? count_++ : count_ - 1;
    for (; position > 0 && one < nearest_[position - 1]; --position) nearest_[position] = nearest_[position - 1];
    nearest_[position] = one;
  }

  // A line through them in the size: its slope lies between none and that of a time that no longer grows.
  double value() const {
    double weights = 0, size = 0, value = 0, squares = 0, products = 0;
    double least = nearest_[0].value, most = nearest_[0].value;
    double smallest = nearest_[0].size, largest = nearest_[0].size;
    for (size_t i = 0; i < count_; ++i) {
      const double weight = std::pow(nearest_[i].distance + kSoftening, -2);
      weights += weight;
      size += weight * nearest_[i].size;
      value += weight * nearest_[i].value;
      squares += weight * nearest_[i].size * nearest_[i].size;
      products += weight * nearest_[i].size * nearest_[i].value;
      least = std::min(least, nearest_[i].value);
      most = std::max(most, nearest_[i].value);
      smallest = std::min(smallest, nearest_[i].size);
      largest = std::max(largest, nearest_[i].size);
    }
    size /= weights;
    value /= weights;
    if (smallest > 0 || largest < 0) return value;  // all on one side: a line would lead out of what was measured
    const double slope = (products / weights - size * value) / (squares / weights - size * size + 2 * kSoftening);
    return std::clamp(value - std::clamp(slope, 0.0, std::log(2.0) / kPerSize) * size, least, most);
  }

 private:
  struct Neighbour {
    double distance;
    double size;
    double value;
    // Spelt out: clang-tidy 14 takes the 0 of a defaulted <=> for a null pointer.
    bool operator<(const Neighbour& other) const {
      return std::tie(distance, size, value) < std::tie(other.distance, other.size, other.value);
    }
  };
  const Coordinates& at_;
  std::array<Neighbour, kNeighbours> nearest_ = {};
  size_t count_ = 0;
};

}  // namespace

double interpolate(const std::vector<SamplePoint>& points, const Coordinates& at) {
  base::ensure(!points.empty(), "there are samples to interpolate");
  Neighbours nearest(at);
  for (const auto& point : points) nearest.add(point, other_kernel(point.at, at));
  return nearest.value();
}

SortedPoints::SortedPoints(std::vector<SamplePoint> points) : points_(std::move(points)) {
  const auto kernel = [](const Coordinates& at) { return std::tie(at.family, at.type, at.layout, at.name); };
  std::stable_sort(points_.begin(), points_.end(), [&](const SamplePoint& a, const SamplePoint& b) {
    return kernel(a.at) != kernel(b.at) ? kernel(a.at) < kernel(b.at) : a.at.x[0] < b.at.x[0];
  });
  for (size_t i = 0; i < points_.size(); ++i) {
    if (i == 0 || kernel(points_[i].at) != kernel(points_[i - 1].at)) kernels_.push_back({i, i});
    kernels_.back().end = i + 1;
  }
}

double SortedPoints::interpolate(const Coordinates& at) const {
  base::ensure(!points_.empty(), "there are samples to interpolate");
  Neighbours nearest(at);
  // Outwards from its own size, until either side is too far off by size alone.
  const auto look_at = [&](const Kernel& kernel, double kernels) {
    const auto begin = points_.begin() + static_cast<std::ptrdiff_t>(kernel.begin);
    const auto end = points_.begin() + static_cast<std::ptrdiff_t>(kernel.end);
    auto above = std::lower_bound(begin, end, at.x[0],
                                  [](const SamplePoint& point, double size) { return point.at.x[0] < size; });
    auto below = above;
    const auto open_above = [&] { return above != end && !nearest.too_far(kernels, above->at.x[0] - at.x[0]); };
    const auto open_below = [&] {
      return below != begin && !nearest.too_far(kernels, std::prev(below)->at.x[0] - at.x[0]);
    };
    while (open_above() || open_below()) {
      if (open_above()) nearest.add(*above++, kernels);
      if (open_below()) nearest.add(*--below, kernels);
    }
  };
  // Its own kernel first, or the one most like it: then most of the others are too far off whatever their size.
  const auto distance = [&](const Kernel& kernel) { return other_kernel(points_[kernel.begin].at, at); };
  const auto first = std::min_element(kernels_.begin(), kernels_.end(),
                                      [&](const Kernel& a, const Kernel& b) { return distance(a) < distance(b); });
  look_at(*first, distance(*first));
  for (auto kernel = kernels_.begin(); kernel != kernels_.end(); ++kernel) {
    const double kernels = distance(*kernel);
    if (kernel != first && !nearest.too_far(kernels, 0)) look_at(*kernel, kernels);
  }
  return nearest.value();
}

}  // namespace lockstep::forecast
