// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/time.h"
#include "lockstep/spec/choice_value.h"

namespace lockstep::forecast {
namespace {

using base::Json;

constexpr size_t kLeftOutOfClass = 60;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Three or four digits are what a clock is good for, and keep the document small.
double rounded(double value, int digits) {
  std::array<char, 40> words = {};
  std::snprintf(words.data(), words.size(), "%.*e", digits - 1, value);
  return std::strtod(words.data(), nullptr);
}

double shortest_kernel(const std::vector<Sample>& samples) {
  std::vector<double> each;
  each.reserve(samples.size());
  for (const auto& sample : samples) {
    each.push_back(sample.seconds / static_cast<double>(std::max<int64_t>(1, sample.op.launches)));
  }
  std::sort(each.begin(), each.end());
  return each[each.size() / 100];  // the odd one below is a clock's error
}

}  // namespace

std::vector<Sample> parse_rows(const Json& rows) {
  std::vector<Sample> samples;
  for (const auto& row : rows.items()) {
    Sample sample;
    // Two gradients in one call have no time of either; transfers are no operators.
    if (!row.contains("seconds") || !row.contains("kind") || row.int_or("launches", 1) == 0) continue;
    sample.op.name = row.at("name").as_string();
    sample.op.kind = spec::choice_value<OperatorClass>(row.at("kind"));
    if (sample.op.kind == OperatorClass::view || sample.op.kind == OperatorClass::host) continue;
    sample.op.type = spec::choice_value<NumberType>(row.at("type"));
    sample.op.flops = row.at("flops").as_double();
    sample.op.bytes = row.at("bytes").as_double();
    sample.op.launches = row.int_or("launches", 1);
    for (const auto& size : row.at("shape").items()) sample.op.shape.push_back(size.as_int());
    sample.seconds = row.at("seconds").as_double();
    if (!(sample.seconds > 0) || !std::isfinite(sample.seconds)) {
      throw base::Error(base::Blame::user, base::text(row.at("seconds").where(), ": a time is above 0"),
                        "measure this row again, or take it out");
    }
    if (const Json* layout = row.find("layout")) sample.layout = spec::choice_value<Layout>(*layout);
    if (const Json* model = row.find("model")) sample.models = {model->as_string()};
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::map<OperatorClass, double> host_by_class(const Json& rows) {
  std::map<OperatorClass, std::pair<double, double>> sums;  // seconds, calls
  for (const auto& row : rows.items()) {
    const Json* seconds = row.find("host_seconds");
    if (seconds == nullptr || !row.contains("kind")) continue;
    auto& [sum, calls] = sums[spec::choice_value<OperatorClass>(row.at("kind"))];
    const auto count = static_cast<double>(row.int_or("count", 1));
    sum += seconds->as_double() * count;
    calls += count;
  }
  std::map<OperatorClass, double> means;
  for (const auto& [kind, sum] : sums) means[kind] = sum.first / sum.second;
  return means;
}

HostCosts fit_host(const std::map<OperatorClass, double>& calls, const std::vector<HostCase>& cases) {
  double mean = 0;
  for (const auto& [kind, seconds] : calls) mean += seconds / static_cast<double>(calls.size());
  const auto of = [&](OperatorClass kind) {
    const auto found = calls.find(kind);
    return found == calls.end() ? mean : found->second;
  };
  std::vector<double> scales;
  for (const auto& one : cases) {
    double known = 0;
    for (const auto& op : last_step_operators(*one.recording)) {
      known += op->launches > 0 && op->kind != OperatorClass::view ? of(op->kind) : of(OperatorClass::view);
    }
    if (known > 0) scales.push_back(one.seconds / known);
  }
  const double scale = scales.empty() ? 1 : median_of(scales);
  HostCosts costs{.operation = rounded(mean * scale, 3), .view = rounded(of(OperatorClass::view) * scale, 3)};
  for (const auto& [kind, seconds] : calls) {
    if (kind != OperatorClass::view && kind != OperatorClass::host) costs.by_class[kind] = rounded(seconds * scale, 3);
  }
  return costs;
}

PowerShares fit_power(const std::vector<PowerCase>& cases, const PowerShares& otherwise) {
  if (cases.size() < 2) return otherwise;
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
  for (const auto& one : cases) {
    const double a = one.busy * (1 - one.compute_bound), b = one.busy * one.compute_bound;
    const double y = (one.watts - one.idle) / (one.cap - one.idle);
    aa += a * a, ab += a * b, bb += b * b, ay += a * y, by += b * y;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant < 1e-9) return otherwise;
  return {rounded(std::clamp((ay * bb - by * ab) / determinant, 0.0, 1.0), 3),
          rounded(std::clamp((by * aa - ay * ab) / determinant, 0.0, 1.0), 3)};
}

std::vector<Sample> merge_samples(const std::vector<Sample>& samples) {
  using Key = std::tuple<OperatorClass, std::string, NumberType, Layout, std::vector<int64_t>, double, double>;
  struct Group {
    std::vector<double> seconds;
    std::set<std::string> models;
    int64_t launches = 1;
  };
  std::map<Key, Group> groups;
  for (const auto& [op, seconds, layout, models] : samples) {
    if (op.kind == OperatorClass::view || op.kind == OperatorClass::host || op.flops + op.bytes <= 0) continue;
    auto& group = groups[{op.kind, op.name, op.type, layout, op.shape, op.flops, op.bytes}];
    group.seconds.push_back(seconds);
    group.models.insert(models.begin(), models.end());
    group.launches = std::max(group.launches, op.launches);
  }
  std::vector<Sample> merged;
  for (const auto& [key, group] : groups) {
    const auto& [kind, name, type, layout, shape, flops, bytes] = key;
    Sample sample{.op = {.name = name, .kind = kind, .type = type, .flops = flops, .bytes = bytes, .shape = shape}};
    sample.op.launches = group.launches;
    sample.seconds = rounded(median_of(group.seconds), 4);
    sample.layout = layout;
    sample.models = {group.models.begin(), group.models.end()};
    merged.push_back(std::move(sample));
  }
  return merged;
}

std::vector<Sample> thin_samples(const std::vector<Sample>& samples, const Rates& rates, double tolerance) {
  std::map<OperatorClass, std::vector<const Sample*>> classes;
  for (const bool of_a_network : {false, true}) {
    for (const auto& sample : samples) {
      if (sample.models.empty() != of_a_network) classes[sample.op.kind].push_back(&sample);
    }
  }
  std::vector<Sample> kept;
  for (const auto& [kind, members] : classes) {
    const SampleGroup all = group_samples(members, rates);
    std::vector<SamplePoint> points;
    for (size_t i = 0; i < members.size(); ++i) {
      const SamplePoint& point = all.points[i];
      const bool first = points.size() < 4;
      if (!first && std::abs(interpolate(points, point.at) - point.log_efficiency) < tolerance) continue;
      points.push_back(point);
      kept.push_back(*members[i]);
    }
  }
  return kept;
}

Spread estimate_spread(std::vector<double> ratios, double tail) {
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<size_t>(std::lround(share * static_cast<double>(ratios.size() - 1)))];
  };
  return {std::min(1.0, rounded(at(tail), 3)), std::max(1.0, rounded(at(1 - tail), 3))};
}

std::vector<double> leave_one_out(const DeviceCalibration& device) {
  std::vector<double> ratios;
  if (device.samples.size() < 2) return ratios;
  std::map<OperatorClass, std::vector<size_t>> classes;
  for (size_t i = 0; i < device.samples.size(); ++i) classes[device.samples[i].op.kind].push_back(i);
  for (const auto& [kind, members] : classes) {
    if (members.size() < 2) continue;
    const size_t stride = (members.size() + kLeftOutOfClass - 1) / kLeftOutOfClass;
    for (size_t at = 0; at < members.size(); at += stride) {
      const size_t left_out = members[at];
      DeviceCalibration rest = device;
      rest.samples.clear();
      for (const size_t i : members) {
        if (i != left_out) rest.samples.push_back(device.samples[i]);
      }
      const Sample& sample = device.samples[left_out];
      const Calibration others({std::move(rest)});
      ratios.push_back(sample.seconds / others.seconds(sample.op, device.rates, sample.layout));
    }
  }
  return ratios;
}

DeviceCalibration fit_operators(const Json& rows, const Rates& rates) {
  DeviceCalibration device;
  device.rates = rates;
  device.rates.notes.clear();
  device.power = {0.55, 0.9};  // of the span above idle
  device.samples = thin_samples(merge_samples(parse_rows(rows)), rates);
  if (device.samples.empty()) {
    throw base::Error(base::Blame::user, "there is no timed operator", "measure some: lockstep bench calibrate");
  }
  device.floor = rates.kind == DeviceKind::gpu ? shortest_kernel(device.samples) : 0;
  device.measured = estimate_spread(leave_one_out(device));
  device.carried_over = {std::min(0.8, device.measured.low), std::max(1.25, device.measured.high)};
  return device;
}

}  // namespace lockstep::forecast
