// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::sources {

// What one bzip2 stream holds. User error that names `source`: damaged, cut off, or more than `max_bytes` when
// unpacked. libbz2 stands behind it; machine error when this build has none.
std::string bunzip2(std::span<const std::byte> file, size_t max_bytes, const std::string& source);
std::string bzip2(std::string_view bytes);  // the same bytes for the same content

}  // namespace lockstep::sources
