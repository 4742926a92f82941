// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/json.h"
#include "lockstep/catalogue/catalogue.h"

namespace lockstep::verbs::doctor {

// The catalogue as tables for people: kind is gpus, cpus, machines, clouds, parts, or "all". User error for another
// word. "-" in a cell: the source does not say.
std::string catalogue_text(const catalogue::Catalogue& catalogue, std::string_view kind);

// The same rows, complete: {"gpus": [...]}, which loads again as a catalogue file.
base::Json catalogue_json(const catalogue::Catalogue& catalogue, std::string_view kind);

}  // namespace lockstep::verbs::doctor
