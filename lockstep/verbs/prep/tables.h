// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/sources/pack/pack.h"
#include "lockstep/sources/pack/probe.h"
#include "lockstep/sources/pack/shapes.h"
#include "lockstep/sources/pack/verify.h"

namespace lockstep::verbs::prep {

// What the verb prints.
std::string packed_text(const sources::Packed& packed, const base::Path& folder);
std::string forecast_text(const sources::PackForecast& forecast, const base::Path& folder);
std::string repaired_text(const sources::Repaired& repaired, const base::Path& folder);
std::string verify_text(const sources::VerifyResult& result);
std::string shapes_text(const sources::Dataset& dataset);
std::string sentences_text(const sources::Dataset& dataset);
std::string radar_text(const sources::Dataset& dataset);
std::string scenes_text(const sources::Dataset& dataset, const std::string& kind);
std::string progress_text(const sources::PackProgress& state);  // "1,200 of 3,680  410/s  24.1 MB/s  6 s left"

}  // namespace lockstep::verbs::prep
