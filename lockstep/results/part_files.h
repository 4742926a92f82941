// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/results/record.h"
#include "lockstep/run/record_file.h"

namespace lockstep::results {

// The records of one rank while a collection is worked through: FOLDER/rank-<n>.part, one line each, the CRC-32C of
// the record in front of it. A kill tears the last line at most; whoever goes on ends it first, and readers pass over
// whatever its checksum does not confirm.
class PartWriter {
 public:
  PartWriter(const base::Path& folder, int64_t rank);

  void append(const std::vector<std::string>& records);  // by one write(2)
  void sync() { file_.sync(); }

 private:
  run::RecordFile file_;
};

std::vector<base::Path> part_files(const base::Path& folder);  // sorted; none when there is no such folder

// Where the records of a collection's images lie, in the results file and the parts. A few bytes an image.
class RecordIndex {
 public:
  // `accept`: the number of the image that a head speaks of; -1: its record does not count.
  using Accept = std::function<int64_t(const RecordHead& head)>;
  explicit RecordIndex(int64_t images) : places_(static_cast<size_t>(images)) {}

  // Later files win over earlier ones: what was done again counts. Returns the lines of a results file that are no
  // records.
  int64_t add_results(const base::Path& file, const Accept& accept);
  void add_part(const base::Path& file, const Accept& accept);

  bool has(int64_t image) const { return places_[static_cast<size_t>(image)].file >= 0; }
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  int64_t done() const;
  int64_t in_parts() const;  // those of them that the results file does not have

  // Each record there is, in the order of the images. The files are opened as they come.
  void for_each(const std::function<void(int64_t image, std::string_view record)>& each) const;

 private:
  struct Place {
    int32_t file = -1;  // in files_
    int32_t size = 0;
    int64_t offset = 0;
  };
  void put(int64_t image, int64_t offset, size_t size);

  std::vector<base::Path> files_;
  std::vector<uint8_t> is_part_;  // by file
  std::vector<Place> places_;     // by image
};

}  // namespace lockstep::results
