// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/forecast/recording.h"
#include "lockstep/measure/cell.h"
#include "lockstep/measure/published.h"

namespace lockstep::measure {

// The step of a published row on a simulated GPU: our explicit 16 bit stands for model.half(), autocast for AMP; two
// ranks stand for any number of them, since their buckets are the same.
forecast::Recording trace_published(const Published& row);

// The step of a cell on that GPU, three times from process start.
forecast::Recording trace_cell(const Cell& cell, const catalogue::Gpu& gpu);

}  // namespace lockstep::measure
