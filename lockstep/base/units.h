// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::base {

// Quantities as people write them. Each parse function throws a user error, without a place, that says what is wrong
// and gives the fix; a bare number is refused, because nobody can know its unit.

// "512 B", "12 GB" (10^9), "16 GiB" (2^30), "1.5 TB"; also "MB", "kB", "KiB"... Spaces are optional.
int64_t parse_bytes(std::string_view words);
// "48:00:00", "1-12:00:00" (days-hours:minutes:seconds, as schedulers write), "90 min", "2 h", "1.5 d", "30 s",
// "250 ms", "5 us", "2 h 30 min"; "none" is 0.
double parse_duration(std::string_view words);  // seconds
// "12 GB/s", "100 Gbit/s" (bits become bytes).
double parse_rate(std::string_view words);  // bytes per second

// For people: three significant digits.
std::string format_bytes(double bytes);        // "12.3 GB"
std::string format_rate(double rate);          // "12.3 GB/s"
std::string format_duration(double seconds);   // "250 ms", "42.1 s", "5 min 12 s", "3 h 05 min", "2 d 4 h"
std::string format_count(int64_t count);       // "1,281,167"
std::string format_short_count(double count);  // "25.6M", "1.01G"

// For documents: parsing gives exactly the same value back.
std::string exact_bytes(int64_t bytes);      // "16 GiB", "12 GB", "1000001 B"
std::string exact_duration(double seconds);  // "48:00:00", "0.5 s", "none" for 0
std::string exact_rate(double rate);         // "12.5 GB/s"

}  // namespace lockstep::base
