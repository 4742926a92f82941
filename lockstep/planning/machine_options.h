// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/trial.h"
#include "lockstep/site/probe.h"
#include "lockstep/spec/machine.h"

namespace lockstep::planning {

// This machine, and its processors as a row for when the catalogue has none.
struct Here {
  spec::Machine machine;
  catalogue::Cpu processor;
};
// A processor that the catalogue does not know: what is assumed of it stands in the row's notes.
catalogue::Cpu assume_processor(const std::string& name, int64_t cores, bool avx512, const std::string& date);
// What the probe tells of the processors; the rest is assumed.
Here describe_here(const site::Probe& probe, const catalogue::Catalogue& catalogue, const std::string& date);

struct MachineRequest {
  std::vector<std::string> on;  // GPUs, machines, processors of the catalogue; documents; here, cpu, all
  std::vector<int64_t> gpus;    // how many GPUs; empty: 1, and of a machine also a whole node
  int64_t per_node = 8;         // GPUs of a node that nobody named
  bool per_node_asked = false;  // the user said so: it counts for machines too
  std::function<Here()> here;   // asked for `here` and `cpu` only
};

// The machine options that --on names, in its order, each once. A machine whose source leaves open which GPU it has
// becomes a machine option for each. GPUs that do not fill their nodes are spread evenly over more of them (10 of a
// machine with 4 a node: 5 nodes with 2 each), and a note says so. User error: an unknown name (nearest ones), a
// machine that states no GPU, more GPUs than it has, a document that names nothing of the catalogue.
std::vector<forecast::MachineOption> find_machine_options(const MachineRequest& request,
                                                          const catalogue::Catalogue& catalogue);

}  // namespace lockstep::planning
