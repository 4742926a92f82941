// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/catalogue/rows.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/memory.h"
#include "lockstep/forecast/time.h"
#include "lockstep/measure/cell.h"

namespace lockstep::measure {

// A measured cell beside its forecast, with what simpler rules would have said.
struct CellForecast {
  Cell cell;
  base::Json measured;  // the row of bench cells
  forecast::Recording recording;
  forecast::TimeForecast time;  // from a calibration without this cell's network
  forecast::MemoryForecast memory;
  double weights_only = 0;
  double live_bytes = 0;  // each storage rounded up to 512
  double deepsim = 0;

  double seconds() const { return measured.at("seconds").as_double(); }
  double reserved() const { return measured.at("peak_reserved_bytes").as_double(); }
  double time_error() const { return time.step.value / seconds() - 1; }
  double roofline_error() const { return time.roofline / seconds() - 1; }
  // `bytes` against the measured peak; above 0: too much.
  double memory_error(double bytes) const { return bytes / reserved() - 1; }
};

using CellTracer = std::function<forecast::Recording(const Cell& cell, const catalogue::Gpu& gpu)>;

// Every cell of `rows` that was measured on a GPU; rows of failed cells are passed over, cells that cannot be traced
// are named through `say`. Each network is foretold by a calibration that has not seen it.
std::vector<CellForecast> forecast_cells(const base::Json& rows, const catalogue::Gpu& gpu,
                                         const forecast::Calibration& calibration, const CellTracer& trace,
                                         const std::function<void(const std::string&)>& say);

base::Json cell_forecast_row(const CellForecast& one, const std::string& command);

}  // namespace lockstep::measure
