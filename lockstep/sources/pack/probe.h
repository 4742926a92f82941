// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/site/quota.h"
#include "lockstep/sources/pack/pack_plan.h"

namespace lockstep::sources {

// The size of finished samples over that in the source, from some samples spread over it; 1 when images are not shrunk.
// The same on every machine.
double expected_growth(const Source& source, const ImageOptions& options);

// What `prep --dry-run` says.
struct PackForecast {
  std::string source_format;
  int64_t num_samples = 0;
  int64_t num_classes = 0;
  bool is_complete = false;  // nothing is left to do
  int64_t num_shards = 0;
  int64_t shards_kept = 0;  // finished in an earlier session; what follows is without them
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;   // shards and their indexes
  int64_t num_inodes = 0;  // files and folders, those of unfinished work among them
  int64_t ranks = 1;
  int64_t threads = 0;  // of a rank
  double seconds = 0;
  int64_t num_probed = 0;
  std::vector<Refused> refused;    // among those probed, and while listing
  std::vector<std::string> notes;  // Source::notes
  int64_t free_bytes = 0;          // of the file system that DIR is on
  int64_t free_inodes = -1;        // -1: it does not count them
  site::Quota quota;               // what the user may still put there
  bool fits() const;

  base::Json to_json() const;
};

// Finishes some samples (spread over the source, for some seconds at most) and reckons, for that many ranks at work.
// Writes nothing. Errors as pack() has them before it begins, also where the folder cannot be written to.
PackForecast forecast_pack(const PackRequest& request, int64_t ranks = 1);

}  // namespace lockstep::sources
