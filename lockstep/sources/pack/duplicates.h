// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {

// Samples whose images had the same bytes in the source.
struct DuplicateGroup {
  std::vector<std::string> samples;  // "train/00000012-cat", sorted
  std::vector<std::string> names;    // of the same in the source: "train: cat/12.jpg"
  bool across_parts = false;         // leakage: what is tested on was trained on
  bool across_labels = false;        // at most one of the labels can be right

  bool operator==(const DuplicateGroup&) const = default;
};

struct Duplicates {
  int64_t num_groups = 0;
  int64_t num_samples = 0;  // beyond the first of each group
  int64_t num_across_parts = 0;
  int64_t num_across_labels = 0;
  std::vector<DuplicateGroup> groups;  // those across parts before the others

  base::Json to_json(size_t most_groups = 1000) const;
  std::string to_text() const;  // all of them, a line each
};

constexpr const char* kDuplicates = "duplicates.txt";  // beside dataset.json

// Out of the indexes of the finished parts of a dataset: no image is read again. `source`: what it was made of.
Duplicates find_duplicates(const base::Path& folder, const std::vector<Part>& parts,
                           const std::vector<SourceSample>& source);

}  // namespace lockstep::sources
