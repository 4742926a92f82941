// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/gpu_families.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {
namespace {

using base::Json;
using base::text;

constexpr int64_t kFamiliesFormat = 1;
constexpr double kPrior = 1;         // origins that the relative's factor counts for
constexpr double kAlike = 0.1;       // origins further off than this (logarithm) count for less
constexpr double kHostShare = 0.85;  // a step whose host takes more of it says little about the device
constexpr double kFarOff = 0.5;      // a row further off (logarithm) counts like this
constexpr size_t kOriginsOfItsOwn = 3;

double factor_in(const Json& value) {
  if (!(value.as_double() > 0) || !std::isfinite(value.as_double())) {
    throw base::Error(base::Blame::user, text(value.where(), ": this must be above 0"),
                      "make the document with lockstep bench forecast --published FILE --fit OUT");
  }
  return value.as_double();
}

GpuFamily parse_family(const Json& row) {
  GpuFamily family;
  family.name = row.at("name").as_string();
  for (const auto& capability : row.at("capabilities").items()) family.capabilities.push_back(capability.as_string());
  family.like = row.string_or("like", "");
  const auto names = choices_of(Arithmetic{});
  for (size_t i = 0; i < names.size(); ++i) family.factors[i] = factor_in(row.at("factors").at(names[i]));
  family.rows = row.int_or("rows", 0);
  family.origins = row.int_or("origins", 0);
  family.spread = {factor_in(row.at("low")), factor_in(row.at("high"))};
  const Json* pooled = row.find("pooled");
  family.pooled = pooled != nullptr && pooled->as_bool();
  return family;
}

double three_digits(double value) {
  return std::round(value * 1000) / 1000;
}

Json family_json(const GpuFamily& family) {
  Json row = Json::object();
  row["name"] = family.name;
  row["capabilities"] = Json::array_of(family.capabilities);
  row["like"] = family.like;
  const auto names = choices_of(Arithmetic{});
  for (size_t i = 0; i < names.size(); ++i) row["factors"][names[i]] = three_digits(family.factors[i]);
  row["rows"] = family.rows;
  row["origins"] = family.origins;
  row["low"] = three_digits(family.spread.low);
  row["high"] = three_digits(family.spread.high);
  row["pooled"] = family.pooled;
  return row;
}

using ByOrigin = std::map<std::string, std::vector<double>>;

double median_off(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Where most origins stand, each with its median, and `prior` as one of them: Huber's estimate, to which a report that
// is far from all others adds no more than one that is `kAlike` away.
double robust_mean(const ByOrigin& logarithms, double prior, double prior_weight = kPrior) {
  std::vector<std::pair<double, double>> values{{prior, prior_weight}};  // with their weights
  for (const auto& [origin, all] : logarithms) values.emplace_back(median_off(all), 1);
  double mean = prior;
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0, weights = 0;
    for (const auto& [value, weight] : values) {
      const double counted = round == 0 ? weight : weight / std::max(1.0, std::abs(value - mean) / kAlike);
      sum += counted * value;
      weights += counted;
    }
    if (weights > 0) mean = sum / weights;
  }
  return mean;
}

std::set<std::string> origins_of(const std::vector<CarriedStep>& steps) {
  std::set<std::string> origins;
  for (const auto& step : steps) origins.insert(step.origin);
  return origins;
}

GpuFamilies fit_with_host(const std::vector<CarriedStep>& steps, GpuFamilies families, double python_host) {
  std::map<std::pair<std::string, Arithmetic>, ByOrigin> by_arithmetic;
  std::map<std::string, ByOrigin> by_family;
  ByOrigin all;
  std::map<std::string, int64_t> rows;
  std::map<std::string, std::set<std::string>> origins;
  for (const auto& step : steps) {
    ++rows[step.family];
    origins[step.family].insert(step.origin);
    const double host = step.host * (step.python ? python_host : 1);
    if (host > kHostShare * step.seconds) continue;
    const double off = std::log(step.seconds / step.device);
    by_arithmetic[{step.family, step.arithmetic}][step.origin].push_back(off);
    by_family[step.family][step.origin].push_back(off);
    all[step.origin].push_back(off);
  }
  families.python_host = python_host;
  const double pool = robust_mean(all, 0, 0);
  std::map<std::string, double> means;  // relatives stand before those that are like them
  const auto fit = [&](GpuFamily& family) {
    const auto like = means.find(family.like);
    const double mean = robust_mean(by_family[family.name], like == means.end() ? pool : like->second);
    means[family.name] = mean;
    for (size_t i = 0; i < family.factors.size(); ++i) {
      family.factors[i] = std::exp(robust_mean(by_arithmetic[{family.name, static_cast<Arithmetic>(i)}], mean));
    }
    family.rows = rows[family.name];
    family.origins = static_cast<int64_t>(origins[family.name].size());
  };
  for (auto& family : families.families) fit(family);
  families.others.factors.fill(std::exp(pool));
  families.others.rows = static_cast<int64_t>(steps.size());
  families.others.origins = static_cast<int64_t>(origins_of(steps).size());
  return families;
}

struct Residual {
  double ratio = 1;  // published / foretold
  double weight = 1;
};

double quantile(std::vector<Residual> residuals, double share) {
  std::sort(residuals.begin(), residuals.end(), [](const Residual& a, const Residual& b) { return a.ratio < b.ratio; });
  double total = 0, passed = 0;
  for (const auto& one : residuals) total += one.weight;
  for (const auto& one : residuals) {
    passed += one.weight;
    if (passed >= share * total) return one.ratio;
  }
  return 1;
}

Spread spread_of(const std::vector<Residual>& residuals) {
  return {std::min(1.0, quantile(residuals, 0.1)), std::max(1.0, quantile(residuals, 0.9))};
}

std::vector<CarriedStep> without_family(const std::vector<CarriedStep>& steps, const std::string& family) {
  std::vector<CarriedStep> others;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(others),
               [&](const CarriedStep& step) { return step.family != family; });
  return others;
}

}  // namespace

Arithmetic arithmetic_of(const Recording& recording) {
  std::array<double, 3> flops = {};
  for (const auto& event : recording.events) {
    if (event.kind != EventKind::run) continue;
    const Operator& op = recording.operators[static_cast<size_t>(event.id)];
    const bool half = op.type == NumberType::bf16 || op.type == NumberType::fp16;
    const auto kind = half ? Arithmetic::half : op.type == NumberType::tf32 ? Arithmetic::tf32 : Arithmetic::fp32;
    flops[static_cast<size_t>(kind)] += op.flops;
  }
  return static_cast<Arithmetic>(std::max_element(flops.begin(), flops.end()) - flops.begin());
}

const GpuFamily& GpuFamilies::of(std::string_view capability) const {
  for (const auto& family : families) {
    for (const auto& member : family.capabilities) {
      if (member == capability) return family;
    }
  }
  return others;
}

GpuFamilies parse_families(const Json& document) {
  if (document.at("format").as_int() != kFamiliesFormat) {
    throw base::Error(base::Blame::user, text(document.at("format").where(), ": this program reads format 1"),
                      "make the document with lockstep bench forecast --published FILE --fit OUT");
  }
  GpuFamilies families;
  families.python_host = factor_in(document.at("python_host"));
  for (const auto& row : document.at("families").items()) families.families.push_back(parse_family(row));
  families.others = parse_family(document.at("others"));
  return families;
}

std::string to_text(const GpuFamilies& families) {
  Json document = Json::object();
  document["format"] = kFamiliesFormat;
  document["python_host"] = three_digits(families.python_host);
  document["families"] = Json::array();
  for (const auto& family : families.families) document["families"].push_back(family_json(family));
  document["others"] = family_json(families.others);
  return document.dump() + "\n";
}

GpuFamilies load_families() {
  for (const auto& file : base::embedded_files()) {
    if (file.name.ends_with("forecast/gpu_families.json"))
      return parse_families(base::parse_json(file.content, std::string(file.name)));
  }
  throw base::Error(base::Blame::bug, "gpu_families.json is not in the program");
}

double carried_seconds(const CarriedStep& step, const GpuFamilies& families) {
  const auto found = std::find_if(families.families.begin(), families.families.end(),
                                  [&](const GpuFamily& family) { return family.name == step.family; });
  const GpuFamily& family = found == families.families.end() ? families.others : *found;
  return std::max(step.host * (step.python ? families.python_host : 1), step.device * family.factor(step.arithmetic));
}

double era_factor(const std::vector<CarriedStep>& steps, const std::string& era, Arithmetic arithmetic) {
  ByOrigin logarithms;
  for (const auto& step : steps) {
    if (step.era == era && step.arithmetic == arithmetic)
      logarithms[step.origin].push_back(std::log(step.seconds / std::max(step.host, step.device)));
  }
  double sum = 0;
  for (const auto& [origin, all] : logarithms) sum += median_off(all) / static_cast<double>(logarithms.size());
  return std::exp(sum);
}

std::vector<CarriedStep> without_origin(const std::vector<CarriedStep>& steps, const std::string& origin) {
  std::vector<CarriedStep> others;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(others),
               [&](const CarriedStep& step) { return step.origin != origin; });
  return others;
}

GpuFamilies fit_factors(const std::vector<CarriedStep>& steps, GpuFamilies families) {
  double best = 1, least = 1e300;
  for (double host = 1; host < 4; host *= 1.05) {
    const GpuFamilies tried = fit_with_host(steps, families, host);
    std::map<std::string, std::pair<double, double>> by_origin;
    for (const auto& step : steps) {
      auto& [sum, count] = by_origin[step.origin];
      sum += std::min(kFarOff, std::abs(std::log(carried_seconds(step, tried) / step.seconds)));
      ++count;
    }
    double error = 0;
    for (const auto& [origin, one] : by_origin) error += one.first / one.second;
    if (error < least) least = error, best = host;
  }
  return fit_with_host(steps, std::move(families), best);
}

GpuFamilies fit_families(const std::vector<CarriedStep>& steps, const GpuFamilies& families) {
  GpuFamilies fitted = fit_factors(steps, families);
  std::map<std::string, std::vector<Residual>> by_family;
  std::map<std::string, std::set<std::string>> origins;
  std::vector<Residual> all, strange;  // of families that were left out with the origin
  for (const auto& origin : origins_of(steps)) {
    const std::vector<CarriedStep> seen = without_origin(steps, origin);
    const GpuFamilies unseen = fit_factors(seen, families);
    std::map<std::string, GpuFamilies> without;  // each family
    const auto count =
        std::count_if(steps.begin(), steps.end(), [&](const auto& step) { return step.origin == origin; });
    for (const auto& step : steps) {
      if (step.origin != origin) continue;
      const auto residual_of = [&](const GpuFamilies& by) {
        return Residual{step.seconds / carried_seconds(step, by), 1 / static_cast<double>(count)};
      };
      by_family[step.family].push_back(residual_of(unseen));
      origins[step.family].insert(origin);
      all.push_back(residual_of(unseen));
      if (without.count(step.family) == 0) {
        without[step.family] = fit_factors(without_family(seen, step.family), families);
      }
      strange.push_back(residual_of(without[step.family]));
    }
  }
  const Spread pool = spread_of(all), farther = spread_of(strange);
  fitted.others.spread = {std::min(pool.low, farther.low), std::max(pool.high, farther.high)};
  fitted.others.pooled = true;
  for (auto& family : fitted.families) {
    family.pooled = origins[family.name].size() < kOriginsOfItsOwn;
    family.spread = family.rows == 0 ? fitted.others.spread : family.pooled ? pool : spread_of(by_family[family.name]);
  }
  return fitted;
}

}  // namespace lockstep::forecast
