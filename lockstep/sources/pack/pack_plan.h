// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/sources/image_work.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {

struct PackRequest {
  SourceOptions source;
  base::Path folder;
  ImageOptions image;
  int64_t shard_bytes = int64_t{256} << 20;
  std::optional<double> validate;  // share of what the source leaves open; nothing: the source's own custom
  double test = 0;
  int64_t seed = 1;
  bool keep_order = false;  // samples as the source lists them, not shuffled
  int64_t threads = 0;      // 0: the cores of this process
};

struct PlannedShard {
  Part part = Part::train;
  std::string name;              // "train-000000": no name comes twice in a dataset
  std::vector<int64_t> samples;  // of the source, in the order in which they are written
  int64_t expected_bytes = 0;

  bool operator==(const PlannedShard&) const = default;
};

// Which sample goes where: fixed by the source's list, the shares and the seed, before any byte is read. Labels are
// spread alike over the parts (stratified); within a part the samples are shuffled unless their order is to be kept.
// `growth` is the expected size of a sample when it is finished, over that in the source.
std::vector<PlannedShard> plan_shards(const Source& source, const PackRequest& request, double growth);

// Unique in the dataset: the sample's number in the source's list, then what a file name may keep of its name.
std::string key_of(int64_t number, std::string_view name);

// What fixes every byte of the result: the request and the source's list. Another description, another dataset.
base::Json describe(const PackRequest& request, const OpenedSource& opened);

// User error for numbers out of range.
void check_request(const PackRequest& request);
// User error: not one sample; says what was left out and why.
void check_samples(const PackRequest& request, const Source& source);

}  // namespace lockstep::sources
