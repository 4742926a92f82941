// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "lockstep/image/image.h"

namespace lockstep::image {

// An animated PNG that goes round for ever, each picture `milliseconds` long; readers that know no animation show the
// first. The same bytes for the same pictures. REQUIRES: one or more, of one size
std::string encode_animation(std::span<const Image> pictures, int milliseconds);

}  // namespace lockstep::image
