// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kByteUnits[] = {{"B", 1},        {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},
                               {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},    {"KiB", 1024},
                               {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}};
constexpr Unit kBitUnits[] = {
    {"bit", 1.0 / 8}, {"kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}};
constexpr Unit kTimeUnits[] = {{"us", 1e-6},    {"ms", 1e-3}, {"s", 1},       {"sec", 1},
                               {"m", 60},       {"min", 60},  {"h", 3600},    {"hour", 3600},
                               {"hours", 3600}, {"d", 86400}, {"day", 86400}, {"days", 86400}};
constexpr const char* kBytesFix = R"(write a number with its unit, e.g. "12 GB" or "16 GiB")";
constexpr const char* kRateFix = R"(write a number with its unit, e.g. "12 GB/s" or "100 Gbit/s")";
constexpr const char* kDurationFix = R"(write "48:00:00" (hours:minutes:seconds), "2-00:00:00", "90 min" or "2 h")";

template <size_t N>
std::optional<double> factor_of(const Unit (&units)[N], std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

// Takes a number >= 0 off the front; nothing when there is none.
std::optional<double> take_number(std::string_view& words) {
  words = trim(words);
  double number = 0;
  const auto [end, error] =
      std::from_chars(words.data(), words.data() + words.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0 || words[0] == '-') return std::nullopt;
  words.remove_prefix(static_cast<size_t>(end - words.data()));
  return number;
}

std::string_view take_word(std::string_view& words) {
  words = trim(words);
  size_t length = 0;
  while (length < words.size() && std::string_view("0123456789 \t").find(words[length]) == std::string_view::npos) {
    ++length;
  }
  const std::string_view word = words.substr(0, length);
  words.remove_prefix(length);
  return word;
}

[[noreturn]] void refuse(std::string_view words, std::string_view problem, const char* fix) {
  throw Error(Blame::user, text("'", words, "' ", problem), fix);
}

// "12:00:00", or with days as Slurm writes them: "1-12:00:00", "1-12:00", "1-12". Nothing when it is not of that form.
std::optional<double> parse_clock(std::string_view words) {
  double days = 0;
  bool has_days = false;
  if (const size_t dash = words.find('-'); dash != std::string_view::npos) {
    std::string_view front = words.substr(0, dash);
    const auto number = take_number(front);
    if (!number || !front.empty() || std::floor(*number) != *number) return std::nullopt;
    days = *number;
    has_days = true;
    words.remove_prefix(dash + 1);
  }
  auto parts = split(words, ':');
  while (has_days && parts.size() < 3) parts.emplace_back("0");
  if (parts.size() != 3) return std::nullopt;
  double seconds = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool digits = !parts[i].empty() && parts[i].find_first_not_of("0123456789") == std::string::npos;
    if (!digits || parts[i].size() > 9) return std::nullopt;
    const double value = std::stod(parts[i]);
    if (i > 0 && value >= 60) return std::nullopt;
    seconds = seconds * 60 + value;
  }
  return days * 86400 + seconds;
}

std::string significant(double value) {
  char buffer[40];
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  std::string digits = buffer;
  if (decimals > 0) {
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
  }
  return digits;
}

// `names` grow by a factor of 1000 from `value`'s own unit.
std::string scaled(double value, const std::vector<const char*>& names) {
  size_t at = 0;
  while (std::abs(value) >= 999.5 && at + 1 < names.size()) {
    value /= 1000;
    ++at;
  }
  return (value < 0 ? "-" : "") + significant(std::abs(value)) + names[at];
}

std::string shortest(double value) {
  char buffer[400];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  return {buffer, end};
}

}  // namespace

int64_t parse_bytes(std::string_view words) {
  std::string_view rest = words;
  const auto number = take_number(rest);
  if (!number) refuse(words, "is not an amount of memory", kBytesFix);
  const std::string_view unit = trim(rest);
  if (unit.empty()) refuse(words, "has no unit", kBytesFix);
  const auto factor = factor_of(kByteUnits, unit);
  if (!factor) refuse(words, text("has the unknown unit '", unit, "'"), kBytesFix);
  const double bytes = std::round(*number * *factor);
  if (bytes >= 0x1p62) refuse(words, "is too large", kBytesFix);
  return static_cast<int64_t>(bytes);
}

double parse_rate(std::string_view words) {
  std::string_view rest = words;
  const auto number = take_number(rest);
  if (!number) refuse(words, "is not a rate", kRateFix);
  std::string_view unit = trim(rest);
  if (unit.empty()) refuse(words, "has no unit", kRateFix);
  if (unit.size() < 3 || unit.substr(unit.size() - 2) != "/s") refuse(words, "is not a rate", kRateFix);
  unit.remove_suffix(2);
  auto factor = factor_of(kByteUnits, unit);
  if (!factor) factor = factor_of(kBitUnits, unit);
  if (!factor) refuse(words, text("has the unknown unit '", unit, "/s'"), kRateFix);
  const double rate = *number * *factor;
  if (!std::isfinite(rate)) refuse(words, "is too large", kRateFix);
  return rate;
}

double parse_duration(std::string_view words) {
  constexpr double kLongest = 1e10;
  constexpr const char* kTooLong = "is longer than 300 years";
  if (words == "none") return 0;
  if (const auto clock = parse_clock(trim(words))) {
    if (*clock > kLongest) refuse(words, kTooLong, kDurationFix);
    return *clock;
  }
  double seconds = 0;
  std::string_view rest = words;
  do {
    const auto number = take_number(rest);
    if (!number || (!rest.empty() && rest[0] == ':')) refuse(words, "is not a duration", kDurationFix);
    const std::string_view unit = take_word(rest);
    if (unit.empty()) refuse(words, "has no unit", kDurationFix);
    const auto factor = factor_of(kTimeUnits, unit);
    if (!factor) refuse(words, text("has the unknown unit '", unit, "'"), kDurationFix);
    seconds += *number * *factor;
  } while (!trim(rest).empty());
  if (seconds > kLongest) refuse(words, kTooLong, kDurationFix);
  return seconds;
}

std::string format_bytes(double bytes) {
  return scaled(bytes, {" B", " kB", " MB", " GB", " TB", " PB"});
}

std::string format_rate(double rate) {
  return format_bytes(rate) + "/s";
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995)
    return seconds < 0.9995e-3 ? significant(seconds * 1e6) + " us" : significant(seconds * 1e3) + " ms";
  if (seconds < 59.95) return significant(seconds) + " s";
  char buffer[64];
  const auto whole = std::llround(std::min(seconds, 1e15));
  if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%lld min %02lld s", whole / 60, whole % 60);
  } else if (whole < 2 * 86400LL) {
    const auto minutes = (whole + 30) / 60;
    std::snprintf(buffer, sizeof buffer, "%lld h %02lld min", minutes / 60, minutes % 60);
  } else {
    const auto hours = (whole + 1800) / 3600;
    std::snprintf(buffer, sizeof buffer, "%lld d %lld h", hours / 24, hours % 24);
  }
  return buffer;
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string format_short_count(double count) {
  return scaled(count, {"", "k", "M", "G", "T", "P"});
}

std::string exact_bytes(int64_t bytes) {
  constexpr std::string_view kNames[] = {"PiB", "PB", "TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB"};
  for (const auto name : kNames) {
    const auto factor = static_cast<int64_t>(factor_of(kByteUnits, name).value());
    if (bytes != 0 && bytes % factor == 0) return text(bytes / factor, " ", name);
  }
  return text(bytes, " B");
}

std::string exact_rate(double rate) {
  constexpr std::string_view kNames[] = {"TB", "GB", "MB", "kB"};
  for (const auto name : kNames) {
    const double factor = factor_of(kByteUnits, name).value();
    const std::string number = shortest(rate / factor);
    if (rate >= factor && number.size() < 12 && std::stod(number) * factor == rate)
      return text(number, " ", name, "/s");
  }
  return shortest(rate) + " B/s";
}

std::string exact_duration(double seconds) {
  if (seconds == 0) return "none";
  const auto whole = static_cast<int64_t>(seconds);
  if (static_cast<double>(whole) != seconds) return shortest(seconds) + " s";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%02lld:%02lld:%02lld", static_cast<long long>(whole / 3600),
                static_cast<long long>(whole / 60 % 60), static_cast<long long>(whole % 60));
  return buffer;
}

}  // namespace lockstep::base
