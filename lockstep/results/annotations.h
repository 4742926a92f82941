// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::results {

struct AnnotationOptions {
  base::Path to;
  double least = 0.5;                                // score or probability from which on an answer is given
  std::string source = {};                           // put before the path of each image: "https://example.org/"
  std::map<std::string, std::string> concepts = {};  // class -> the IRI of the concept that it stands for
};

struct AnnotationSummary {
  int64_t images = 0;
  int64_t annotations = 0;
  int64_t failed = 0;
};

// The answers of a results file as W3C Web Annotations (an AnnotationPage, JSON-LD): objects with a FragmentSelector in
// whole pixels and, of a mask, an SvgSelector with its outline; classes of the whole image. The same record has the
// same annotations, with the same ids. Holds one record at a time.
AnnotationSummary write_annotations(const base::Path& results, const AnnotationOptions& options);

// Those of one record; none for an image that could not be read.
std::vector<base::Json> annotate(const base::Json& record, const AnnotationOptions& options);

// Of a CSV file with the columns class and iri.
std::map<std::string, std::string> read_concepts(const base::Path& file);

}  // namespace lockstep::results
