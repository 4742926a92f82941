// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/site/probe.h"
#include "lockstep/verbs/doctor/report.h"

namespace lockstep::verbs::doctor {

// Checks what the probe found: each wrong thing with the command that fixes it.
DoctorReport examine(const site::Probe& probe, const catalogue::Catalogue& catalogue);

}  // namespace lockstep::verbs::doctor
