// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/verbs/prep/pack.h"
#include "lockstep/verbs/prep/prep.h"
#include "lockstep/verbs/prep/probe.h"
#include "lockstep/verbs/prep/verify.h"

namespace lockstep::verbs {

// What the verb prints.
std::string packed_text(const Packed& packed, const base::Path& folder);
std::string forecast_text(const PackForecast& forecast, const base::Path& folder);
std::string mended_text(const Mended& mended, const base::Path& folder);
std::string verify_text(const VerifyResult& result);
std::string shapes_text(const Dataset& dataset);
std::string scenes_text(const Dataset& dataset, const std::string& kind);
std::string progress_text(const PackProgress& state);  // "1,200 of 3,680  410/s  24.1 MB/s  6 s left"

}  // namespace lockstep::verbs
