// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/annotations.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/base/csv.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/outline.h"
#include "lockstep/results/record.h"
#include "lockstep/version.h"

namespace lockstep::results {
namespace {

using base::Json;
using base::text;

constexpr double kOutlineTolerance = 1;  // pixels

// Made of what it stands for, so that the same annotation has the same id: RFC 9562, version 8.
std::string uuid_of(const std::string& content) {
  std::string hex = base::sha256_hex(content).substr(0, 32);
  hex[12] = '8';
  hex[16] = 'a';
  return text("urn:uuid:", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-", hex.substr(16, 4), "-",
              hex.substr(20));
}

// A path as part of an IRI (RFC 3986): whatever is not plain is written as %XX.
std::string encoded_path(std::string_view path) {
  static constexpr std::string_view kPlain = "-._~/!$&'()*+,;=:@";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != std::string_view::npos;
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", byte);
    out += plain ? std::string(1, c) : code;
  }
  return out;
}

Json fragment_selector(const Json& box, int64_t width, int64_t height) {
  const auto& numbers = box.items();
  const auto whole = [](double value, int64_t most) {
    return std::clamp<int64_t>(static_cast<int64_t>(value), 0, std::max<int64_t>(most, 0));
  };
  const double x = numbers.at(0).as_double(), y = numbers.at(1).as_double();
  const int64_t left = whole(std::floor(x), width - 1), top = whole(std::floor(y), height - 1);
  const int64_t right = whole(std::ceil(x + numbers.at(2).as_double()), width);
  const int64_t bottom = whole(std::ceil(y + numbers.at(3).as_double()), height);
  Json selector = Json::object();
  selector["type"] = "FragmentSelector";
  selector["conformsTo"] = "http://www.w3.org/TR/media-frags/";
  selector["value"] = text("xywh=pixel:", left, ",", top, ",", std::max<int64_t>(1, right - left), ",",
                           std::max<int64_t>(1, bottom - top));
  return selector;
}

Json svg_selector(const image::Mask& mask) {
  std::string path;
  for (const auto& outline : image::trace_outlines(mask)) {
    const char* command = "M";
    for (const auto& corner : image::simplify_outline(outline, kOutlineTolerance)) {
      path += text(command, static_cast<int64_t>(corner.x), " ", static_cast<int64_t>(corner.y));
      command = "L";
    }
    path += "Z";
  }
  Json selector = Json::object();
  selector["type"] = "SvgSelector";
  selector["value"] = text("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", mask.width, " ", mask.height,
                           "\"><path fill-rule=\"evenodd\" d=\"", path, "\"/></svg>");
  return selector;
}

// Null: the whole image.
Json selector_of(const Json& record, const Json& answer) {
  const Json* box = answer.find("box");
  if (!box) return {};
  const int64_t width = record.at("width").as_int(), height = record.at("height").as_int();
  Json fragment = fragment_selector(*box, width, height);
  const Json* segmentation = answer.find("segmentation");
  if (!segmentation || segmentation->is_null()) return fragment;
  const image::Mask mask = image::rasterize_mask(*segmentation, width, height);
  if (mask.area() == 0) return fragment;
  return Json::array({std::move(fragment), svg_selector(mask)});
}

Json body_of(const std::string& name, const AnnotationOptions& options) {
  Json body = Json::object();
  const auto concept_iri = options.concepts.find(name);
  if (concept_iri == options.concepts.end()) {
    body["type"] = "TextualBody";
    body["value"] = name;
  } else {
    body["type"] = "SpecificResource";
    body["source"] = concept_iri->second;
  }
  body["purpose"] = "tagging";
  return body;
}

Json annotation_of(const Json& record, const Json& answer, const std::string& name, double score, int64_t number,
                   const AnnotationOptions& options) {
  Json annotation = Json::object();
  annotation["id"] = uuid_of(text(record.string_or("sha256", ""), " ", record.at("path").as_string(), " ",
                                  record.at("model").as_string(), " ", number));
  annotation["type"] = "Annotation";
  annotation["motivation"] = "tagging";
  annotation["body"] = body_of(name, options);
  const std::string source = options.source + encoded_path(record.at("path").as_string());
  if (Json selector = selector_of(record, answer); selector.is_null()) {
    annotation["target"] = source;
  } else {
    annotation["target"]["source"] = source;
    annotation["target"]["selector"] = std::move(selector);
  }
  annotation["created"] = record.at("time");
  annotation["generator"]["type"] = "Software";
  annotation["generator"]["name"] = "lockstep " LOCKSTEP_VERSION;
  annotation["model"] = record.at("model");
  annotation["confidence"] = score;
  return annotation;
}

}  // namespace

std::vector<Json> annotate(const Json& record, const AnnotationOptions& options) {
  std::vector<Json> annotations;
  const auto add_all = [&](const char* list, const char* name, const char* score) {
    const Json* answers = record.find(list);
    if (!answers || !answers->is_array()) return;
    int64_t number = 0;
    for (const auto& answer : answers->items()) {
      const double sure = answer.at(score).as_double();
      if (sure >= options.least) {
        annotations.push_back(annotation_of(record, answer, answer.at(name).as_string(), sure, number, options));
      }
      ++number;
    }
  };
  add_all("objects", "class", "score");
  add_all("classes", "name", "probability");
  return annotations;
}

AnnotationSummary write_annotations(const base::Path& results, const AnnotationOptions& options) {
  AnnotationSummary summary;
  DraftedFile file(options.to);
  // What the Web Annotation vocabulary has no word for stands in a namespace of our own.
  file.write(R"({"@context": ["http://www.w3.org/ns/anno.jsonld", {"confidence": {"@id": "urn:lockstep:confidence", )"
             R"("@type": "http://www.w3.org/2001/XMLSchema#double"}, "model": "urn:lockstep:model"}],)");
  file.write(
      text("\n\"id\": \"", uuid_of(options.to.filename().string()), "\", \"type\": \"AnnotationPage\", \"items\": ["));
  for_each_record(results, [&](const Json& record) {
    ++(record.contains("error") ? summary.failed : summary.images);
    for (const auto& annotation : annotate(record, options)) {
      file.write(summary.annotations++ == 0 ? "\n" : ",\n");
      file.write(annotation.dump(-1));
    }
  });
  file.write("\n]}\n");
  file.commit();
  return summary;
}

std::map<std::string, std::string> read_concepts(const base::Path& file) {
  const base::Csv table = base::parse_csv(base::read_file(file), file.string());
  std::map<std::string, std::string> concepts;
  for (const auto& row : table.rows) concepts[table.at(row, "class")] = table.at(row, "iri");
  return concepts;
}

}  // namespace lockstep::results
