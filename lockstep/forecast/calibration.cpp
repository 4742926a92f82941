// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/nearness.h"
#include "lockstep/spec/choice_value.h"

namespace lockstep::forecast {
namespace {

using base::Json;
using base::text;

constexpr int64_t kCalibrationFormat = 1;
constexpr base::JsonLimits kLimits = {.max_bytes = 16 << 20};

constexpr double kOfShortest = 0.9;    // latency: this much of what the shortest samples of a class take
constexpr double kLatencyOnly = 0.05;  // samples whose roofline time is less than this share of theirs show it
constexpr double kLeastMoving = 0.1;   // of a sample's time is not latency

double fit_latency(const std::vector<const Sample*>& samples, const Rates& rates) {
  std::vector<double> seconds;
  for (const Sample* sample : samples) {
    if (roofline(sample->op, rates).seconds() < kLatencyOnly * sample->seconds) seconds.push_back(sample->seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds.empty() ? 0 : kOfShortest * seconds[seconds.size() / 50];
}

[[noreturn]] void refuse(const Json& value, const std::string& what) {
  throw base::Error(base::Blame::user, text(value.where(), ": ", what),
                    "make the document with lockstep bench fit; it is not written by hand");
}

double positive(const Json& value) {
  if (!(value.as_double() > 0) || !std::isfinite(value.as_double())) refuse(value, "this must be above 0");
  return value.as_double();
}

double not_negative(const Json& value) {
  if (!(value.as_double() >= 0) || !std::isfinite(value.as_double())) refuse(value, "this must not be below 0");
  return value.as_double();
}

Spread parse_spread(const Json& value) {
  const Spread spread{positive(value.at("low")), positive(value.at("high"))};
  if (spread.low > 1 || spread.high < 1) refuse(value, "low is at most 1, high at least 1");
  return spread;
}

Rates parse_rates(const Json& value) {
  Rates rates;
  rates.id = value.at("id").as_string();
  rates.kind = spec::choice_value<DeviceKind>(value.at("kind"));
  rates.bandwidth = positive(value.at("bandwidth"));
  rates.clock_ghz = value.double_or("clock_ghz", 0);
  const auto names = choices_of(NumberType{});
  for (size_t i = 0; i < names.size(); ++i) rates.flops[i] = positive(value.at("flops").at(names[i]));
  return rates;
}

// A sample is a list: name, class, type, layout, flops, bytes, launches, seconds, shape, models.
Sample parse_sample(const Json& value) {
  const auto& cells = value.items();
  if (cells.size() != 10) refuse(value, "a sample has ten columns");
  Sample sample;
  sample.op.name = cells[0].as_string();
  sample.op.kind = spec::choice_value<OperatorClass>(cells[1]);
  sample.op.type = spec::choice_value<NumberType>(cells[2]);
  sample.layout = spec::choice_value<Layout>(cells[3]);
  sample.op.flops = not_negative(cells[4]);
  sample.op.bytes = not_negative(cells[5]);
  if (sample.op.flops + sample.op.bytes <= 0) refuse(value, "an operator without operations and bytes has no rate");
  sample.op.launches = cells[6].as_int();
  sample.seconds = positive(cells[7]);
  for (const auto& size : cells[8].items()) sample.op.shape.push_back(size.as_int());
  for (const auto& model : cells[9].items()) sample.models.push_back(model.as_string());
  return sample;
}

Json sample_json(const Sample& sample) {
  return Json::array({sample.op.name, name_of(sample.op.kind), name_of(sample.op.type), name_of(sample.layout),
                      sample.op.flops, sample.op.bytes, sample.op.launches, sample.seconds,
                      Json::array_of(sample.op.shape), Json::array_of(sample.models)});
}

Json spread_json(const Spread& spread) {
  Json value = Json::object();
  value["low"] = spread.low;
  value["high"] = spread.high;
  return value;
}

Json header_json(const DeviceCalibration& calibration) {
  Json document = Json::object();
  document["format"] = kCalibrationFormat;
  document["device"]["id"] = calibration.rates.id;
  document["device"]["kind"] = name_of(calibration.rates.kind);
  document["device"]["bandwidth"] = calibration.rates.bandwidth;
  document["device"]["clock_ghz"] = calibration.rates.clock_ghz;
  const auto names = choices_of(NumberType{});
  for (size_t i = 0; i < names.size(); ++i) document["device"]["flops"][names[i]] = calibration.rates.flops[i];
  document["machine"] = calibration.machine;
  document["command"] = calibration.command;
  document["date"] = calibration.date;
  document["floor"] = calibration.floor;
  document["gap"] = calibration.gap;
  document["host"]["operation"] = calibration.host.operation;
  document["host"]["view"] = calibration.host.view;
  document["host"]["kernel"] = calibration.host.kernel;
  document["host"]["step"] = calibration.host.step;
  for (const auto& [kind, seconds] : calibration.host.by_class) document["host"]["by_class"][name_of(kind)] = seconds;
  document["power"]["memory_bound"] = calibration.power.memory_bound;
  document["power"]["compute_bound"] = calibration.power.compute_bound;
  document["measured"] = spread_json(calibration.measured);
  document["carried_over"] = spread_json(calibration.carried_over);
  return document;
}

std::vector<base::Path> user_documents() {
  std::vector<base::Path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(user_calibrations(), none)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

DeviceCalibration parse_calibration(const Json& document) {
  if (document.at("format").as_int() != kCalibrationFormat)
    refuse(document.at("format"), "this program reads format 1");
  DeviceCalibration calibration;
  calibration.rates = parse_rates(document.at("device"));
  calibration.machine = document.at("machine").as_string();
  calibration.command = document.at("command").as_string();
  calibration.date = document.at("date").as_string();
  calibration.floor = not_negative(document.at("floor"));
  calibration.gap = not_negative(document.at("gap"));
  const Json& host = document.at("host");
  calibration.host = {not_negative(host.at("operation")), not_negative(host.at("view")),
                      not_negative(host.at("kernel")), not_negative(host.at("step"))};
  if (const Json* classes = host.find("by_class")) {
    for (const auto& member : classes->members()) {
      Json name = member.key;
      name.set_position(member.key_position, classes->source());
      calibration.host.by_class[spec::choice_value<OperatorClass>(name)] = not_negative(member.value);
    }
  }
  const Json& power = document.at("power");
  calibration.power = {not_negative(power.at("memory_bound")), not_negative(power.at("compute_bound"))};
  calibration.measured = parse_spread(document.at("measured"));
  calibration.carried_over = parse_spread(document.at("carried_over"));
  for (const auto& sample : document.at("samples").items()) calibration.samples.push_back(parse_sample(sample));
  if (calibration.samples.empty()) refuse(document.at("samples"), "there is no sample");
  return calibration;
}

std::string to_text(const DeviceCalibration& calibration) {
  std::string out = header_json(calibration).dump();
  out.erase(out.rfind('\n'));  // the closing brace comes after the samples
  out += ",\n  \"samples\": [";
  const char* separator = "\n    ";
  for (const auto& sample : calibration.samples) {
    out += separator + sample_json(sample).dump(-1);
    separator = ",\n    ";
  }
  return out + "\n  ]\n}\n";
}

SampleGroup group_samples(const std::vector<const Sample*>& samples, const Rates& rates) {
  SampleGroup group;
  group.latency = fit_latency(samples, rates);
  for (const Sample* sample : samples) {
    const double bound = size_seconds(sample->op, rates);
    const double moving = std::max(sample->seconds - group.latency, kLeastMoving * sample->seconds);
    group.points.push_back(
        {coordinates_of(sample->op, rates, sample->layout), std::log(std::min(1.0, bound / moving))});
  }
  return group;
}

Calibration::Calibration(std::vector<DeviceCalibration> devices, std::optional<GpuFamilies> families)
    : devices_(std::move(devices)), families_(std::move(families)) {
  if (devices_.empty()) {
    throw base::Error(base::Blame::user, "there is no calibration: no time can be foretold",
                      "measure one: lockstep bench calibrate, then lockstep bench fit");
  }
  for (size_t device = 0; device < devices_.size(); ++device) {
    if (devices_[device].samples.empty()) {
      throw base::Error(base::Blame::user, text("the calibration of ", devices_[device].rates.id, " has no sample"),
                        "measure some: lockstep bench calibrate, then lockstep bench fit");
    }
    std::map<OperatorClass, std::vector<const Sample*>> classes;
    for (const auto& sample : devices_[device].samples) classes[sample.op.kind].push_back(&sample);
    for (const auto& [kind, samples] : classes) {
      SampleGroup group = group_samples(samples, devices_[device].rates);
      groups_[{device, static_cast<int>(kind)}] = {group.latency, SortedPoints(std::move(group.points))};
    }
  }
}

const DeviceCalibration& Calibration::basis(const Rates& rates) const {
  return devices_[basis_index(rates)];
}

size_t Calibration::basis_index(const Rates& rates) const {
  size_t found = devices_.size();
  size_t variant = devices_.size();
  for (size_t i = devices_.size(); i-- > 0;) {
    if (devices_[i].rates.id == rates.id) return i;
    if (devices_[i].rates.id == rates.variant_of) variant = i;
    if (devices_[i].rates.kind == rates.kind) found = i;
  }
  if (variant < devices_.size()) return variant;
  if (found == devices_.size()) {
    throw base::Error(base::Blame::user, text("no ", name_of(rates.kind), " was calibrated: no time can be foretold"),
                      "measure one: lockstep bench calibrate, then lockstep bench fit");
  }
  return found;
}

bool Calibration::measured(const Rates& rates) const {
  return basis(rates).rates.id == rates.id;
}

bool Calibration::variant(const Rates& rates) const {
  return !measured(rates) && basis(rates).rates.id == rates.variant_of;
}

const GpuFamily* Calibration::family(const Rates& rates) const {
  if (!families_ || rates.kind != DeviceKind::gpu || measured(rates) || variant(rates)) return nullptr;
  return &families_->of(rates.capability);
}

double Calibration::carry_factor(const Rates& rates, Arithmetic arithmetic) const {
  const GpuFamily* carried = family(rates);
  return carried == nullptr ? 1 : carried->factor(arithmetic);
}

const Calibration::Group& Calibration::group(size_t device, OperatorClass kind) const {
  // A class that was never timed moves bytes: so does elementwise.
  for (const auto candidate : {kind, OperatorClass::elementwise, OperatorClass::copy}) {
    const auto found = groups_.find({device, static_cast<int>(candidate)});
    if (found != groups_.end()) return found->second;
  }
  return groups_.lower_bound({device, 0})->second;
}

double Calibration::efficiency(const Operator& op, const Rates& rates, Layout layout) const {
  const double bound = roofline(op, rates).seconds();
  const Group& near = group(basis_index(rates), op.kind);
  const double share = std::exp(near.points.interpolate(coordinates_of(op, rates, layout)));
  return bound > 0 ? bound / (near.latency + size_seconds(op, rates) / share) : share;
}

double Calibration::seconds(const Operator& op, const Rates& rates, Layout layout) const {
  if (op.kind == OperatorClass::view || op.kind == OperatorClass::host || op.launches == 0) return 0;
  const double bound = roofline(op, rates).seconds();
  const double least = basis(rates).floor * static_cast<double>(op.launches);
  return bound <= 0 ? least : std::max(least, bound / efficiency(op, rates, layout));
}

Calibration Calibration::with_host(double factor) const {
  Calibration other = *this;
  for (auto& device : other.devices_) {
    for (double* cost : {&device.host.operation, &device.host.view, &device.host.kernel, &device.host.step}) {
      *cost *= factor;
    }
    for (auto& [kind, seconds] : device.host.by_class) seconds *= factor;
  }
  return other;
}

Calibration Calibration::with_families(GpuFamilies families) const {
  Calibration other = *this;
  other.families_ = std::move(families);
  return other;
}

Calibration Calibration::without_model(const std::string& model) const {
  auto devices = devices_;
  for (auto& device : devices) {
    std::erase_if(device.samples,
                  [&](const Sample& sample) { return sample.models == std::vector<std::string>{model}; });
  }
  return Calibration(std::move(devices), families_);
}

base::Path user_calibrations() {
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config)
    return base::Path(config) / "lockstep/calibration";
  const char* home = std::getenv("HOME");
  return base::Path(home ? home : "") / ".config/lockstep/calibration";
}

Calibration load_calibration() {
  std::vector<DeviceCalibration> devices;
  const auto add = [&](const Json& document, const std::string& file = "") {
    DeviceCalibration one = parse_calibration(document);
    one.file = file;
    // In its place: times of a GPU that was not measured are carried over from the first one, as the families' are.
    const auto same = std::find_if(devices.begin(), devices.end(),
                                   [&](const DeviceCalibration& other) { return other.rates.id == one.rates.id; });
    if (same == devices.end()) {
      devices.push_back(std::move(one));
    } else {
      *same = std::move(one);
    }
  };
  for (const auto& file : base::embedded_files()) {
    if (file.name.starts_with("catalogue/calibration/")) {
      add(base::parse_json(file.content, std::string(file.name), kLimits));
    }
  }
  for (const auto& file : user_documents()) add(base::read_json(file, kLimits), file.string());
  return Calibration(std::move(devices), load_families());
}

}  // namespace lockstep::forecast
