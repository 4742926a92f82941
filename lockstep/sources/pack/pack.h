// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/sources/pack/pack_plan.h"
#include "lockstep/sources/pack/statistics.h"

namespace lockstep::sources {

struct PackProgress {
  int64_t samples_done = 0;  // in this session
  int64_t samples_left = 0;
  int64_t bytes_in = 0;
  double seconds = 0;
};

// The processes that pack one dataset together, each a share of the shards, on a file system that all of them see.
struct Team {
  int64_t rank = 0;
  int64_t size = 1;
  std::function<void()> barrier = [] {};
};

struct Packed {
  base::Json dataset;         // dataset.json; rank 0 only
  bool was_complete = false;  // nothing had to be done
  int64_t shards_kept = 0;    // finished in an earlier session
  double seconds = 0;
};

// Writes the dataset DIR/{train,validate,test} in shards, or what is missing of it. docs/formats/shards.md. The same
// bytes on any number of threads and ranks, interrupted or not. User error: see open_source, is_complete,
// check_request; a source without a readable sample; another prep at work in the folder.
Packed pack(const PackRequest& request, const std::function<void(const PackProgress&)>& progress,
            const Team& team = {});

struct Repaired {
  int64_t num_shards = 0;            // of the dataset
  std::vector<std::string> damaged;  // those that were made again
  double seconds = 0;
};

// Makes the damaged and missing shards of a complete dataset again, out of the source it was made of. User error: the
// dataset is another one or not complete, its lists are lost, or the source gives other bytes by now.
Repaired repair(const PackRequest& request, const std::function<void(const PackProgress&)>& progress);

// What was complete once may have lost files since: an error that says so. `dataset`: what dataset.json says.
void check_shards_are_there(const base::Path& folder, const base::Json& dataset);

}  // namespace lockstep::sources
