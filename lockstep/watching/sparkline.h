// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::watching {

enum class Letters { ascii, unicode };  // what the terminal can show

// A curve on one line of at most `width` characters: values are averaged into columns, the lowest is the lowest bar.
// What is not finite is left out; empty without a value.
std::string sparkline(const std::vector<double>& values, int width, Letters letters);

// `share` of a bar of `width` characters.
std::string progress_bar(double share, int width, Letters letters);

}  // namespace lockstep::watching
