// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/catalogue/rows.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/forecast/roofline.h"
#include "lockstep/spec/choice.h"

namespace lockstep::forecast {

// Where a figure comes from: measured on this very device type, or carried over from another by its rates.
LOCKSTEP_CHOICE(Basis, measured, carried_over)

struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
  Basis basis = Basis::carried_over;
};

// The links between the ranks of one option.
struct Network {
  int64_t ranks = 1;
  int64_t nodes = 1;
  double intra_rate = 0;     // bytes per second and direction, per GPU
  double inter_rate = 0;     // bytes per second and direction, per node
  double intra_latency = 0;  // seconds; 0: by the kind of link
  double inter_latency = 0;
  bool nvlink = false;
};

struct TimeForecast {
  Interval step;                             // seconds
  std::map<OperatorClass, double> by_class;  // seconds on the device
  double device = 0;                         // seconds the compute stream is busy
  double host = 0;                           // seconds the launching thread is busy
  double communication = 0;                  // seconds of collectives
  double exposed = 0;                        // of these, not hidden behind computing
  double skew = 0;                           // seconds waited for the slowest of the ranks
  double compute_bound_share = 0;            // of `device`: what the power draw depends on
  double roofline = 0;                       // seconds of `device` if every operator ran at the device's rates
  double bytes = 0;                          // that its operators read and write, on one rank
  bool host_bound = false;
  std::vector<std::string> notes;  // what the device lacks and how it was counted
};

class Calibration;  // calibration.h

// The warm step (the last one of the recording) on one GPU of that type, `network` between the ranks. User error when
// the recording has collectives for several ranks and `network` no rate.
TimeForecast forecast_time(const Recording& recording, const catalogue::Gpu& gpu, const Calibration& calibration,
                           const Network& network = {});
TimeForecast forecast_time(const Recording& recording, const catalogue::Cpu& cpu, int64_t cores,
                           const Calibration& calibration, const Network& network = {});

// What the warm step runs, in order; an operator as often as it is called.
std::vector<const Operator*> last_step_operators(const Recording& recording);

}  // namespace lockstep::forecast
