// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/run/disk.h"
#include "lockstep/run/part_file.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::run {

// A safetensors file of these tensors, whose bytes must stay alive and unchanged until the save is done.
CheckpointPart safetensors_part(std::string name, const std::vector<weights::TensorView>& tensors,
                                const weights::TensorMetadata& metadata = {});

struct Save {
  int64_t step = 0;
  base::Json state;  // becomes state.json with "format" and "step" in front; an object
  std::vector<CheckpointPart> parts;
  int64_t keep = 2;             // newest ones kept, the new one included; best and milestones are kept besides
  int64_t milestone_steps = 0;  // checkpoints of its multiples are kept for ever; 0: none
  bool best = false;            // the best so far by validation
  std::function<void()> before_commit = [] {};  // throws when the folder is not ours any more

  std::vector<std::string> partitions = {};  // names of the parts that other nodes write (write_partition)
  std::string token = {};                    // of this attempt, with partitions
  Patience patience = {};                    // with partitions
};

// A checkpoint on the disk. All of its checksums held when it was found.
struct Checkpoint {
  base::Path folder;
  int64_t step = 0;
  base::Json state;

  base::Path file(std::string_view name) const { return folder / name; }
};

struct Found {
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> passed_over;  // one line for each newer one that is damaged: what and why
};

// The checkpoints of a run, in format 1, or in format 2 with tensors in partitions (docs/formats/checkpoint.md). A
// checkpoint appears under its final name only when all of it, checksums included, is on the disk; older ones are
// removed only after that. Nothing here deletes a good checkpoint before a newer good one is durable. Not for use from
// two threads or processes at once (see RunFolder).
class CheckpointStore {
 public:
  explicit CheckpointStore(base::Path folder, std::shared_ptr<Disk> disk = real_disk());

  // Returns the new folder. Machine error when the disk is full or fails: nothing is left under a final name, the
  // earlier checkpoints are untouched, and a later save may be tried.
  base::Path save(const Save& save);
  // What failed after the commit of the last save (marks, the removal of older ones), in words; empty: nothing. The
  // checkpoint is good, and the next save tries again.
  const std::string& untidy() const { return untidy_; }
  // One of save.partitions, from a process of another node.
  void write_partition(const std::string& token, const CheckpointPart& part) {
    run::write_partition(*disk_, folder_, token, part);
  }

  // The newest one whose every checksum holds, walking back from step `at_most`; never deletes. Machine error when the
  // folder cannot be listed: a run must not start over because of that.
  Found newest(int64_t at_most = std::numeric_limits<int64_t>::max()) const;
  // The one marked best when it is good, else as newest().
  Found best() const;

 private:
  base::Path folder_;
  std::shared_ptr<Disk> disk_;
  std::string owed_best_;  // to be marked best; empty: none
  std::string untidy_;

  void tidy(const Save& save, const std::string& name);
};

// The newest checkpoint by its name alone: one under a final name is whole, and this reads none of it.
struct Stamp {
  int64_t step = 0;
  double time = 0;  // Unix seconds, when its last file was written
};
std::optional<Stamp> newest_stamp(const base::Path& checkpoints);

// Read from the files of the checkpoint, whether it is good or not.
bool is_checkpoint(const base::Path& folder);

// Why the checkpoint in `folder` cannot be trusted; empty when every checksum holds.
std::string damage(const base::Path& folder);

}  // namespace lockstep::run
