// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/get/sources.h"

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::get {
namespace {

std::vector<double> doubles(const base::Json& row, std::string_view key) {
  std::vector<double> values;
  if (const base::Json* list = row.find(key)) {
    for (const base::Json& item : list->items()) values.push_back(item.as_double());
  }
  return values;
}

SourceFile parse_file(const base::Json& row) {
  return {row.string_or("url", ""), row.string_or("inside", ""), row.string_or("sha256", ""), row.string_or("md5", ""),
          row.int_or("bytes", 0)};
}

}  // namespace

std::string SourceFile::name() const {
  const std::string& address = inside.empty() ? url : inside;
  return address.substr(address.rfind('/') + 1);
}

std::vector<Source> parse_sources(const base::Json& document) {
  std::vector<Source> sources;
  for (const base::Json& row : document.at("sources").items()) {
    Source source;
    source.kind = row.at("kind").as_string();
    source.name = row.at("name").as_string();
    source.about = row.at("about").as_string();
    source.licence = row.at("licence").as_string();
    source.megabytes = row.at("megabytes").as_double();
    source.package = row.string_or("package", "");
    source.version = row.string_or("version", "");
    for (const base::Json& file : row.at("files").items()) source.files.push_back(parse_file(file));
    source.image_size = row.int_or("image_size", 0);
    source.mean = doubles(row, "mean");
    source.std = doubles(row, "std");
    source.center_crop = row.double_or("center_crop", 0);
    sources.push_back(std::move(source));
  }
  return sources;
}

std::vector<Source> known_sources() {
  for (const base::Embedded& file : base::embedded_files()) {
    if (file.name == "catalogue/sources.json") {
      return parse_sources(base::parse_json(file.content, std::string(file.name)));
    }
  }
  throw base::Error(base::Blame::bug, "catalogue/sources.json is not built into the program");
}

const Source& find_source(const std::vector<Source>& sources, const std::string& kind, const std::string& name) {
  std::vector<std::string> names;
  for (const Source& source : sources) {
    if (source.kind != kind) continue;
    if (source.name == name) return source;
    names.push_back(source.name);
  }
  if (names.empty()) {
    throw base::Error(base::Blame::user, base::text("get knows no '", kind, "'"), "weights or data: lockstep get");
  }
  throw base::Error(base::Blame::user, base::text("there is no source of ", kind, " '", name, "'"),
                    base::did_you_mean(name, names));
}

}  // namespace lockstep::verbs::get
