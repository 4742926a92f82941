// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/shards/shard_writer.h"

namespace lockstep::sources {

struct VerifyResult {
  int64_t num_shards = 0;
  int64_t num_samples = 0;
  int64_t num_bytes = 0;            // of tar files
  std::vector<std::string> faults;  // each names a file, or a sample in it
  double seconds = 0;

  base::Json to_json() const;
};

// Checks a dataset (DIR/{train,validate,test}) or one folder of shards: every tar file's checksum and headers, that all
// three indexes tell the same, that dataset.json and the lists tell of these very shards and all are there, every
// member's checksum, every image decoded, every label, every key once. User error when there is no such folder; what is
// wrong within comes back in `faults`.
VerifyResult verify(const base::Path& folder, int64_t threads,
                    const std::function<void(int64_t done, int64_t total)>& progress);

// What is wrong with the files of one shard of a folder: as above, without a look at each sample, whose bytes the tar
// file's checksum covers.
std::vector<std::string> shard_faults(const base::Path& folder, const shards::ShardSummary& shard);

}  // namespace lockstep::sources
