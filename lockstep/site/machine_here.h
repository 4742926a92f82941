// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/site/probe.h"
#include "lockstep/spec/machine.h"

namespace lockstep::site {

// This machine as a machine document that loads again. GPUs and CPU by their catalogue ids where there is a row;
// GPUs without a row are named in the notes. `date` is today's, "2026-11-15".
spec::Machine describe_machine(const Probe& probe, const catalogue::Catalogue& catalogue, const std::string& date);

// What was measured and counted, for programs.
base::Json facts_json(const Probe& probe);

}  // namespace lockstep::site
