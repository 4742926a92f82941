// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/catalogue/rows.h"
#include "lockstep/spec/machine.h"

namespace lockstep::catalogue {

// GPUs, CPUs, machines, cloud offers and workstation parts, with sources. A value: load it once and hand it on.
struct Catalogue {
  std::vector<Gpu> gpus;
  std::vector<Cpu> cpus;
  std::vector<MachineRow> machines;
  std::vector<Offer> clouds;
  std::vector<Part> parts;

  // The row, or a user error with the nearest ids. `where` ("job.json:3:14") opens the message when it is not empty.
  const Gpu& gpu(std::string_view id, const std::string& where = "") const;
  const Cpu& cpu(std::string_view id, const std::string& where = "") const;
  const MachineRow& machine(std::string_view id, const std::string& where = "") const;

  // The row of the GPU that the driver calls `driver_name`, of several the last: a user's own stand behind ours. Null
  // when none fits.
  const Gpu* gpu_by_driver_name(std::string_view driver_name) const;
  // The row of the processor whose name stands in `model_name` of /proc/cpuinfo, likewise.
  const Cpu* cpu_by_model_name(std::string_view model_name) const;

  // Adds the rows of one document {"gpus": [...], "machines": [...], ...}; a row of an id that exists replaces it.
  // User error with file, line and column: unknown kind or key, wrong type, no source or date, an id twice in the file.
  void add(const base::Json& document);
  // Every id that a row names (a machine's GPUs, a part's CPU) must exist: user error otherwise.
  void check_references() const;
};

// The embedded files, then every *.json of ~/.config/lockstep/catalogue and of the folder $LOCKSTEP_CATALOGUE, in the
// order of their names: later rows replace earlier ones.
Catalogue load_catalogue();
Catalogue load_embedded();

// User error with the place and the nearest names when `machine` names a GPU that no row has. `document` is what the
// machine was parsed from; it only serves the place.
void check_machine(const spec::Machine& machine, const Catalogue& catalogue, const base::Json& document = {});

// The row as a machine document: the first of its possible GPUs, and "not stated" (0, "") where the row has nothing.
spec::Machine to_machine(const MachineRow& row);

}  // namespace lockstep::catalogue
