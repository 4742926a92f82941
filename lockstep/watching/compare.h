// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/run/folder.h"

namespace lockstep::watching {

struct Row {
  std::string name;
  std::vector<base::Json> values;  // one a run, in their order; null: it has none
};

// Runs beside each other, from their folders alone.
struct Differences {
  std::vector<std::string> runs;
  std::vector<Row> settings;       // keys of the job that are not the same in all of them
  std::vector<Row> circumstances;  // likewise, of their last sessions: ranks, device, software, data
  std::vector<Row> figures;        // how far each came and how good it is, the same or not
};

// User error for a folder that is no run. A key that an older run's job does not have counts with its default.
Differences compare_runs(const std::vector<run::RunPaths>& runs);

base::Json to_json(const Differences& differences);
std::string to_text(const Differences& differences);  // one table each, a column a run

}  // namespace lockstep::watching
