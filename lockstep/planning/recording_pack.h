// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/forecast/recording.h"

namespace lockstep::planning {

// Many recordings of one network in little space, for a page that carries those of the whole zoo. They differ in
// precision, batch and levers and repeat each other, and themselves step by step: what happens and how much of it are
// kept apart, a number that was the same one recording before or grew with the batch is one of two marks, and what was
// there before, however long ago, is a reference. (Compressed afterwards, a recording of 200 kB takes about 2 kB.)
std::string pack_recordings(const std::vector<forecast::Recording>& recordings);
// User error when this is not what pack_recordings() gave: cut, changed, of another version of the program.
std::vector<forecast::Recording> unpack_recordings(std::string_view packed);

}  // namespace lockstep::planning
