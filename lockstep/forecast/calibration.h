// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/forecast/gpu_families.h"
#include "lockstep/forecast/nearness.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/forecast/roofline.h"

namespace lockstep::forecast {

// An operator that was timed on a device.
struct Sample {
  Operator op;
  double seconds = 0;
  Layout layout = Layout::channels_last;
  std::vector<std::string> models = {};  // networks whose step has it; what leave-one-model-out leaves out

  bool operator==(const Sample&) const = default;
};

// What the launching thread pays, in seconds.
struct HostCosts {
  double operation = 0;                           // an operator that launches something, autograd around it included
  double view = 0;                                // an operator that launches nothing
  double kernel = 0;                              // each launch beyond an operator's first
  double step = 0;                                // a step, whatever it does
  std::map<OperatorClass, double> by_class = {};  // in place of `operation`, where it was measured

  bool operator==(const HostCosts&) const = default;
};

// Shares of the span between idle and full power that a busy device draws.
struct PowerShares {
  double memory_bound = 0;
  double compute_bound = 0;

  bool operator==(const PowerShares&) const = default;
};

// Everything measured on one device. The document is docs/formats/calibration.md.
struct DeviceCalibration {
  Rates rates;
  std::string machine;  // what it was, in words: GPU, driver, processor
  std::string command;  // what measured it
  std::string date;
  double floor = 0;  // seconds: no kernel is shorter
  double gap = 0;    // seconds from one kernel to the next, when the host is ahead
  HostCosts host;
  PowerShares power;
  Spread measured;      // on this very device
  Spread carried_over;  // on others, where no family says more
  std::vector<Sample> samples;
  std::string file = {};  // where the user keeps it; empty: it came with the program

  bool operator==(const DeviceCalibration&) const = default;
};

DeviceCalibration parse_calibration(const base::Json& document);  // user error with the place
std::string to_text(const DeviceCalibration& calibration);        // the document, one sample a line

// The samples of one class as points: their latency, and the share of the rates that the rest of their time shows.
struct SampleGroup {
  double latency = 0;
  std::vector<SamplePoint> points;
};
SampleGroup group_samples(const std::vector<const Sample*>& samples, const Rates& rates);

// What was measured, asked for what was not. An operator's time is the latency of its class (what the shortest sample
// took: it is much the same on every GPU) and its roofline time over a share that the nearest samples give: near in
// roofline time (what saturates a small GPU is small), in the balance of operations and bytes, and in the shapes that
// decide which kernel runs. A value; deterministic.
class Calibration {
 public:
  // User error when there is no device.
  explicit Calibration(std::vector<DeviceCalibration> devices, std::optional<GpuFamilies> families = {});

  // The device's own calibration, or else the first one of its kind; user error when no device of its kind was
  // measured.
  const DeviceCalibration& basis(const Rates& rates) const;
  bool measured(const Rates& rates) const;  // on this very device
  bool variant(
      const Rates& rates) const;  // not measured, but of the basis' chip and memory: its shares hold as they are
  // What carries the basis' shares to a GPU that was not measured and is no variant; nothing for the others.
  const GpuFamily* family(const Rates& rates) const;
  double carry_factor(const Rates& rates, Arithmetic arithmetic) const;

  // Samples of the layout are preferred for operators that have one.
  double efficiency(const Operator& op, const Rates& rates, Layout layout = Layout::channels_last) const;  // in (0, 1]
  // On the device; 0 for view and host.
  double seconds(const Operator& op, const Rates& rates, Layout layout = Layout::channels_last) const;

  // Every cost of the launching thread times `factor`.
  Calibration with_host(double factor) const;
  Calibration with_families(GpuFamilies families) const;
  // Without every sample that only `model`'s step has.
  Calibration without_model(const std::string& model) const;

  const std::vector<DeviceCalibration>& devices() const { return devices_; }

 private:
  using Key = std::pair<size_t, int>;
  std::vector<DeviceCalibration> devices_;
  std::optional<GpuFamilies> families_;
  struct Group {
    double latency = 0;
    SortedPoints points;
  };
  std::map<Key, Group> groups_;  // by device and class

  size_t basis_index(const Rates& rates) const;
  const Group& group(size_t device, OperatorClass kind) const;
};

// ~/.config/lockstep/calibration, or under XDG_CONFIG_HOME.
base::Path user_calibrations();

// The embedded documents of catalogue/calibration/, then those of ~/.config/lockstep/calibration/: a later one of the
// same device replaces an earlier one.
Calibration load_calibration();

}  // namespace lockstep::forecast
