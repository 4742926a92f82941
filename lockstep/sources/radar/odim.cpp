// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/odim.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/radar/grid.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr double kOdimGain = 0.5, kOdimOffset = -33;
constexpr uint8_t kOdimNodata = 255, kOdimUndetect = 0;
constexpr int64_t kMostOdimValues = int64_t{1} << 26;  // of a volume, as of Level II

[[noreturn]] void fail_odim(const std::string& source, const std::string& what) {
  throw Error(Blame::user, text(source, ": ", what), "h5dump -A tells what it holds; docs/nowcasting.md what is read");
}

// The first that has it: a data's own group, then its dataset, then the file.
std::optional<double> number_at(const Hdf5File& file, const std::vector<std::string>& groups, const char* name) {
  for (const auto& group : groups) {
    if (const auto value = file.number(group, name)) return value;
  }
  return std::nullopt;
}

double needed_number(const Hdf5File& file, const std::vector<std::string>& groups, const char* name,
                     const std::string& source) {
  const auto value = number_at(file, groups, name);
  if (value && std::isfinite(*value)) return *value;
  fail_odim(source, text(groups.front(), " has no number '", name, "'"));
}

double moment_at(const Hdf5File& file, const std::string& group, const char* date, const char* time) {
  return moment_of(file.words(group, date).value_or(""), file.words(group, time).value_or(""));
}

// "NOD:bewid,WMO:06477" -> "bewid".
std::string site_of(const std::string& source_words) {
  for (const char* key : {"NOD:", "RAD:", "WMO:", "CMT:", "PLC:"}) {
    const size_t at = source_words.find(key);
    if (at == std::string::npos) continue;
    std::string name = source_words.substr(at + 4, source_words.find_first_of(",;", at) - at - 4);
    if (!name.empty()) return name;
  }
  return "radar";
}

struct FoundData {
  std::string group;    // "dataset1/data1"
  std::string dataset;  // "dataset1"
  const Hdf5Array* array;
};

// Arrays of the quantity, dataset by dataset.
std::vector<FoundData> data_of(const Hdf5File& file, const std::string& quantity) {
  std::vector<FoundData> found;
  for (const Hdf5Array& array : file.arrays()) {
    const auto parts = base::split(array.name, '/');
    if (parts.size() != 3 || !parts[0].starts_with("dataset") || !parts[1].starts_with("data") || parts[2] != "data")
      continue;
    const std::string group = text(parts[0], "/", parts[1]);
    auto own = file.words(group + "/what", "quantity");
    if (!own) own = file.words(parts[0] + "/what", "quantity");
    if (own.value_or("") == quantity) found.push_back({group, parts[0], &array});
  }
  return found;
}

// A row of the array as numbers, whatever they are in the file.
std::vector<double> row_of(const Hdf5File& file, const Hdf5Array& array, int64_t row) {
  const std::string bytes = file.slice(array, row);
  const int64_t count = array.slice_bytes() / array.item_bytes;
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const char* at = bytes.data() + i * array.item_bytes;
    const auto as = [&]<class Number>(Number value) {
      std::memcpy(&value, at, sizeof value);
      values.push_back(static_cast<double>(value));
    };
    if (array.type == "u1")
      as(uint8_t{});
    else if (array.type == "u2")
      as(uint16_t{});
    else if (array.type == "u4")
      as(uint32_t{});
    else if (array.type == "u8")
      as(uint64_t{});
    else if (array.type == "i1")
      as(int8_t{});
    else if (array.type == "i2")
      as(int16_t{});
    else if (array.type == "i4")
      as(int32_t{});
    else if (array.type == "i8")
      as(int64_t{});
    else if (array.type == "f4")
      as(float{});
    else
      as(double{});
  }
  return values;
}

// How the numbers of an array are meant.
struct Coding {
  double gain = 1, offset = 0;
  std::optional<double> nodata, undetect;

  float value(double raw) const {
    // Where both are one number, files mean by it that nothing was seen.
    if (undetect && raw == *undetect) return kNoEcho;
    if (std::isnan(raw) || (nodata && raw == *nodata)) return kNotMeasured;
    return static_cast<float>(raw * gain + offset);
  }
};

Coding coding_of(const Hdf5File& file, const FoundData& data) {
  const std::vector<std::string> groups{data.group + "/what", data.dataset + "/what", "what"};
  return {number_at(file, groups, "gain").value_or(1), number_at(file, groups, "offset").value_or(0),
          number_at(file, groups, "nodata"), number_at(file, groups, "undetect")};
}

// Version 2.4 counts rstart in metres, those before it in kilometres.
bool has_metres(const Hdf5File& file) {
  const std::string words = file.words("", "Conventions").value_or(file.words("what", "version").value_or(""));
  const size_t digit = words.find_first_of("0123456789", words.starts_with("H5rad") ? 5 : words.find("/V"));
  if (digit == std::string::npos) return false;
  char* end = nullptr;
  const int64_t major = std::strtol(words.c_str() + digit, &end, 10);
  const int64_t minor = *end == '_' || *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
  return major > 2 || (major == 2 && minor >= 4);
}

PolarSweep read_odim_sweep(const Hdf5File& file, const FoundData& data, const std::string& source) {
  constexpr int64_t kMostRays = 4096, kMostBins = 16384;
  const std::vector<std::string> where{data.dataset + "/where", data.group + "/where", "where"};
  const Hdf5Array& array = *data.array;
  const double said_rays = needed_number(file, where, "nrays", source);
  const double said_bins = needed_number(file, where, "nbins", source);
  if (array.shape.size() != 2 || static_cast<double>(array.shape[0]) != said_rays ||
      static_cast<double>(array.shape[1]) != said_bins || said_rays < 1 || said_bins < 1 || said_rays > kMostRays ||
      said_bins > kMostBins) {
    fail_odim(source, text(array.name, " is no array of ", said_rays, " x ", said_bins, ", as nrays and nbins of ",
                           where[0], " say"));
  }
  const int64_t rays = array.shape[0], bins = array.shape[1];
  PolarSweep sweep;
  sweep.elevation = needed_number(file, where, "elangle", source);
  sweep.gate_spacing = needed_number(file, where, "rscale", source);
  if (!(sweep.gate_spacing > 0)) fail_odim(source, text(where[0], "/rscale is no length"));
  const double start = number_at(file, where, "rstart").value_or(0);  // where the first gate begins
  sweep.first_gate = start * (has_metres(file) ? 1 : 1000) + sweep.gate_spacing / 2;
  sweep.gates = bins;
  sweep.seconds = moment_at(file, data.dataset + "/what", "startdate", "starttime");
  const Coding coding = coding_of(file, data);
  sweep.values.reserve(static_cast<size_t>(rays * bins));
  for (int64_t ray = 0; ray < rays; ++ray) {  // row 0 begins in the north
    sweep.azimuths.push_back((static_cast<double>(ray) + 0.5) * 360 / static_cast<double>(rays));
    for (const double raw : row_of(file, array, ray)) sweep.values.push_back(coding.value(raw));
  }
  return sweep;
}

}  // namespace

bool is_odim(const Hdf5File& file) {
  return file.words("", "Conventions").value_or("").starts_with("ODIM") ||
         (file.words("what", "object") && file.words("what", "date"));
}

RadarVolume read_odim_header(const Hdf5File& file, const std::string& source) {
  if (!is_odim(file)) fail_odim(source, "no ODIM file: neither Conventions nor what/object are there");
  RadarVolume volume;
  volume.site = site_of(file.words("what", "source").value_or(""));
  volume.seconds = moment_at(file, "what", "date", "time");
  if (std::isnan(volume.seconds)) fail_odim(source, "what/date and what/time are no time");
  volume.latitude = file.number("where", "lat").value_or(kNotMeasured);
  volume.longitude = file.number("where", "lon").value_or(kNotMeasured);
  volume.altitude = file.number("where", "height").value_or(0);
  return volume;
}

RadarVolume read_odim(const Hdf5File& file, const std::string& source) {
  RadarVolume volume = read_odim_header(file, source);
  auto found = data_of(file, "DBZH");
  if (found.empty()) found = data_of(file, "TH");
  if (found.empty()) fail_odim(source, "no reflectivity in it: no data of quantity DBZH or TH");
  int64_t values = 0;
  for (const FoundData& data : found) {
    // What is packed well takes few bytes of a file: memory is bounded by what comes out.
    if (data.array->item_bytes > 0)
      values += data.array->count() * (data.array->slice_bytes() / data.array->item_bytes);
    if (values > kMostOdimValues) fail_odim(source, text("more than ", kMostOdimValues, " values in its sweeps"));
    volume.sweeps.push_back(read_odim_sweep(file, data, source));
    if (std::isnan(volume.sweeps.back().seconds)) volume.sweeps.back().seconds = volume.seconds;
  }
  std::stable_sort(volume.sweeps.begin(), volume.sweeps.end(),
                   [](const PolarSweep& a, const PolarSweep& b) { return a.elevation < b.elevation; });
  for (size_t i = 0; i < volume.sweeps.size(); ++i) volume.sweeps[i].number = static_cast<int64_t>(i + 1);
  return volume;
}

bool is_odim_image(const Hdf5File& file) {
  const std::string object = file.words("what", "object").value_or("");
  return object == "COMP" || object == "IMAGE";
}

OdimImage read_odim_image(const Hdf5File& file, const std::string& source, double factor, double exponent) {
  const RadarVolume header = read_odim_header(file, source);
  auto found = data_of(file, "DBZH");
  const bool is_rate = found.empty();
  if (is_rate) found = data_of(file, "RATE");
  if (found.empty()) fail_odim(source, "no data of quantity DBZH or RATE");
  const FoundData& data = found.front();
  const Hdf5Array& array = *data.array;
  if (array.shape.size() != 2) fail_odim(source, text(array.name, " is no image"));
  check_grid(array.shape[0], array.shape[1], source);
  OdimImage image{header.seconds, array.shape[0], array.shape[1], 0, {}};
  const std::vector<std::string> where{data.dataset + "/where", "where"};
  image.cell = number_at(file, where, "xscale").value_or(0);
  if (image.cell > 0 && image.cell < 50) image.cell *= 1000;  // some write kilometres
  const Coding coding = coding_of(file, data);
  image.values.reserve(static_cast<size_t>(image.height * image.width));
  for (int64_t row = 0; row < image.height; ++row) {
    for (const double raw : row_of(file, array, row)) {
      const float value = coding.value(raw);
      const bool is_number = std::isfinite(value);
      image.values.push_back(!is_rate || !is_number ? value
                             : value > 0 ? static_cast<float>(10 * std::log10(factor * std::pow(value, exponent)))
                                         : kNoEcho);
    }
  }
  return image;
}

void write_odim(const RadarVolume& volume, const base::Path& path) {
  std::vector<Hdf5Attribute> attributes;
  const auto words = [&](const std::string& group, const char* name, const std::string& value) {
    attributes.push_back({group, name, value, std::nullopt});
  };
  const auto number = [&](const std::string& group, const char* name, double value) {
    attributes.push_back({group, name, "", value});
  };
  const auto date_of = [](double seconds) {  // "20240521", "215236"
    std::string digits;
    for (const char c : moment_text(seconds)) {
      if (c >= '0' && c <= '9') digits += c;
    }
    return std::pair(digits.substr(0, 8), digits.substr(8));
  };
  const auto [date, time] = date_of(volume.seconds);
  words("", "Conventions", "ODIM_H5/V2_3");
  words("what", "object", "PVOL");
  words("what", "version", "H5rad 2.3");
  words("what", "date", date);
  words("what", "time", time);
  words("what", "source", "NOD:" + volume.site);
  number("where", "lat", volume.latitude);
  number("where", "lon", volume.longitude);
  number("where", "height", volume.altitude);
  std::vector<Hdf5Bytes> arrays;
  for (size_t i = 0; i < volume.sweeps.size(); ++i) {
    const PolarSweep& sweep = volume.sweeps[i];
    const std::string dataset = text("dataset", i + 1);
    const auto [sweep_date, sweep_time] = date_of(sweep.seconds);
    words(dataset + "/what", "product", "SCAN");
    words(dataset + "/what", "startdate", sweep_date);
    words(dataset + "/what", "starttime", sweep_time);
    number(dataset + "/where", "elangle", sweep.elevation);
    number(dataset + "/where", "nrays", static_cast<double>(sweep.rays()));
    number(dataset + "/where", "nbins", static_cast<double>(sweep.gates));
    number(dataset + "/where", "rscale", sweep.gate_spacing);
    number(dataset + "/where", "rstart", (sweep.first_gate - sweep.gate_spacing / 2) / 1000);
    number(dataset + "/where", "a1gate", 0);
    words(dataset + "/data1/what", "quantity", "DBZH");
    number(dataset + "/data1/what", "gain", kOdimGain);
    number(dataset + "/data1/what", "offset", kOdimOffset);
    number(dataset + "/data1/what", "nodata", kOdimNodata);
    number(dataset + "/data1/what", "undetect", kOdimUndetect);
    std::vector<size_t> order(sweep.azimuths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return sweep.azimuths[a] < sweep.azimuths[b]; });
    Hdf5Bytes array{dataset + "/data1/data", {sweep.rays(), sweep.gates}, ""};
    for (const size_t ray : order) {
      for (int64_t gate = 0; gate < sweep.gates; ++gate) {
        const float value = sweep.at(static_cast<int64_t>(ray), gate);
        const double raw = std::isnan(value)  ? kOdimNodata
                           : value == kNoEcho ? kOdimUndetect
                                              : std::clamp(std::round((value - kOdimOffset) / kOdimGain), 1.0, 254.0);
        array.bytes += static_cast<char>(static_cast<uint8_t>(raw));
      }
    }
    arrays.push_back(std::move(array));
  }
  write_hdf5(path, arrays, attributes);
}

}  // namespace lockstep::sources
