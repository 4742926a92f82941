// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/step.h"

namespace lockstep::measure {

// One point of the grid that forecasts are held against: {"model": "resnet50", "batch": 64, "precision": "bf16",
// "optimizer": "sgd"}; also image_size (224), micro_batch, recompute ("all" or block names), expandable_segments,
// layout ("contiguous"), kernels ("fused"; else reference: libtorch's own, which the forecast is fitted to).
struct Cell {
  spec::Job job;
  bool expandable_segments = false;
  bool graph = false;  // the step becomes a CUDA graph, as in a run; its operators cannot be timed one by one then

  std::string name() const;  // "resnet50-b64-bf16-sgd": of files and messages
};

// User error naming the place of an unknown key or a wrong value.
Cell parse_cell(const base::Json& row);
// The cells of the file, or those built in (cells.json). As JSON, so that a bad one spoils only itself.
std::vector<base::Json> read_cells(const std::string& file);

struct CellRun {
  at::Device device = at::kCPU;
  int64_t threads = 1;
  int64_t steps = 10;         // timed, at least
  double seconds = 1.5;       // of timed steps, at least
  bool operators = false;     // also time each operator
  base::Path allocator = {};  // GPU: the allocator's recording goes here; empty: none
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

struct CellResult {
  base::Json row;        // of results/*.json
  base::Json operators;  // rows, each with the cell's model, batch, precision
};

// Runs the cell's real step with made-up data, copied from the host each step as `train` does. REQUIRES: a fresh
// process, when allocator figures shall mean something.
CellResult run_cell(const Cell& cell, const CellRun& how);

// Who, when and what of a row: model, batch, precision, ...; the same for measured and failed cells.
base::Json cell_head(const base::Json& cell, const std::string& device);

}  // namespace lockstep::measure
