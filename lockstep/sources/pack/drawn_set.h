// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "lockstep/base/json.h"
#include "lockstep/sources/pack/shapes.h"

namespace lockstep::sources {

// The set in dataset.folder where it is complete already, with the fingerprint and the numbers that its dataset.json
// has; none where it has to be drawn, or what is missing of it. User error as is_complete (folder_state.h).
std::optional<Dataset> complete_set(Dataset dataset, const base::Json& description);

// Draws the set under the folder's lock: `draw` places its files and gives the dataset its fingerprint; what it adds to
// the description is kept in dataset.json, which is written last. User error: another prep is at work there.
using DrawSet = std::function<void(Dataset& dataset, base::Json& file)>;
Dataset write_set(Dataset dataset, base::Json description, const DrawSet& draw);

}  // namespace lockstep::sources
