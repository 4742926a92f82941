// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/forecast/scaling.h"

namespace lockstep::advice {

// Tables that somebody measured, with what it takes to explain them: docs/formats/measured_table.md.
struct MeasuredTable {
  std::string title;
  std::string gpu;        // of the catalogue; empty: not stated
  std::string job;        // document of the job that was measured, beside the table's; empty: none
  double epochs = 0;      // above 0: "batch" is to be read
  int64_t gpu_batch = 1;  // of such a table: samples of a step on each GPU, where its job is planned
  double walltime_h = 0;  // of one job; 0: no limit
  std::vector<forecast::ScalingRow> rows;
  struct Figures {  // what was measured beside a row's rate, and what a plan had said
    std::optional<double> efficiency_low = {}, efficiency_high = {};  // over the runs
    std::optional<double> hidden = {};                                // share of the communication
    std::optional<double> planned_rate = {};                          // samples per second
    std::optional<double> planned_hours = {};                         // of its steps
    std::string planned_with = {};                                    // what the plan changed to make it fit
    std::string score = {};                                           // on the validation set, at the end
  };
  std::vector<Figures> figures;      // one a row
  std::string planned_network = {};  // of the job, once it was planned (planned_rows.h)

  struct Elsewhere {  // the same work where somebody published a rate
    std::string name;
    double rate = 0;        // samples per second, all GPUs
    std::string precision;  // as the source writes it
    std::string source;
  };
  std::vector<Elsewhere> elsewhere;

  struct Reference {  // a published rate of one GPU, carried over to `gpu` by the rates of fp32
    std::string gpu;
    double rate = 0;
    std::string source;
  };
  Reference reference;  // rate 0: none

  struct Network {              // what the collective model is asked
    double gradient_bytes = 0;  // 0: it is not asked, or that of the job's network
    int64_t per_node = 1;
    double inter_rate = 0;  // bytes per second
    std::string note;
  };
  Network network;
};

struct MeasuredWorkflow {
  struct Phase {
    std::string name;
    double hours = 0;
  };
  struct SpeedUp {
    std::string name;
    double factor = 0;
  };
  std::string title;
  std::vector<Phase> phases;
  std::string scaled;       // name of the phase that becomes faster
  double stated_share = 0;  // of it, as the source rounds it; 0: from the hours
  std::vector<SpeedUp> speed_ups;
};

struct Measured {
  std::string title;
  std::string source;
  std::vector<std::string> notes;
  std::vector<MeasuredTable> tables;
  std::vector<MeasuredWorkflow> workflows;
};

// User error with the place: a missing or unknown key, a wrong type, a row without what its table needs.
Measured parse_measured(const base::Json& document);

}  // namespace lockstep::advice
