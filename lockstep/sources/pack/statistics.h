// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/shards/shard_writer.h"
#include "lockstep/sources/image_work.h"
#include "lockstep/sources/pack/class_pairs.h"
#include "lockstep/sources/pack/column_counts.h"
#include "lockstep/sources/pack/word_counts.h"

namespace lockstep::sources {

// The objects that the .json member of a sample lists. Labels that are none of the classes are not counted: the member
// may be a foreign one.
struct ObjectCounts {
  std::vector<int64_t> per_class = {};  // by "label"; empty where it lists none
  int64_t single = 0;                   // all of them but crowds
  int64_t bad_outlines = 0;             // those whose outline was none and is left out
  std::string first_bad_outline = "";   // why, of the first
  base::Json columns = {};              // of the image: year, place

  bool operator==(const ObjectCounts&) const = default;
};
ObjectCounts count_objects(const FinishedSample& sample, size_t num_classes);

// What is counted while samples are written. Whole numbers only: the sum over the shards does not depend on order.
struct Statistics {
  int64_t num_samples = 0;
  std::vector<int64_t> per_class;          // samples by label
  std::vector<int64_t> objects_per_class;  // objects in samples, by label
  int64_t most_objects = 0;                // in one sample, without crowds
  int64_t bad_outlines = 0;                // of objects, left out
  std::string first_bad_outline;           // why, of the first
  ClassPairs pairs;                        // classes of objects beside each other
  ColumnCounts columns;                    // and on images of which year or place
  WordCounts words;                        // of captions
  int64_t num_images = 0;
  std::string without_image;  // what the first sample holds that has no image: "array 3x32x32 of u1", ".webp"
  int64_t min_width = 0, max_width = 0, sum_width = 0;
  int64_t min_height = 0, max_height = 0, sum_height = 0;
  int64_t bytes_in = 0;   // of all members in the source
  int64_t bytes_out = 0;  // of all members as written
  int64_t num_shrunk = 0;
  int64_t num_turned = 0;
  PixelSums pixels;

  void add(const FinishedSample& sample, int32_t label, const ObjectCounts& objects = {});
  void add(const Statistics& other);
  base::Json to_json() const;  // everything that from_json needs
  static Statistics from_json(const base::Json& value);
  base::Json for_people() const;  // means instead of sums
  bool operator==(const Statistics&) const = default;
};

// A finished shard, as its note in the folder of unfinished work says it.
struct ShardReport {
  shards::ShardSummary summary;  // num_samples 0: every sample was refused, there is no shard
  Statistics statistics;
  std::vector<Refused> refused;

  base::Json to_json() const;
  static ShardReport from_json(const base::Json& value);
  bool operator==(const ShardReport&) const = default;
};

}  // namespace lockstep::sources
