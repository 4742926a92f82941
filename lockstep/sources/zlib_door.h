// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::sources {

// What a gzip file (one member or several) holds. User error that names `source`: damaged, cut off, or more than
// `max_bytes` when unpacked. zlib stands behind it; machine error when this build has none.
std::string gunzip(std::span<const std::byte> file, size_t max_bytes, const std::string& source);
// Its first bytes, `bytes` of them or all that there are; what stands behind them is not looked at.
std::string gunzip_start(std::span<const std::byte> file, size_t bytes, const std::string& source);

}  // namespace lockstep::sources
