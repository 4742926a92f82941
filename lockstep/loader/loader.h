// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/image/resample.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/pace.h"
#include "lockstep/run/loader_state.h"
#include "lockstep/spec/job.h"

namespace lockstep::loader {

// A sample that could not be read under `on_bad_sample: skip` keeps its row, so that every rank knows every batch's
// shape without a message; its target says that it has no part in loss, gradient or metric. Who averages over the
// batch divides by the number of rows that have a target, summed over the ranks.
constexpr int64_t kNoTarget = -1;

// One rank's share of one global batch, ready for the network.
struct Batch {
  int64_t step = 0;         // global step
  int64_t epoch = 0;        // the epoch all its samples belong to
  int64_t global_size = 0;  // rows in the whole batch, all ranks; those with kNoTarget count here, but not in a loss
  int64_t image_size = 0;
  std::vector<int64_t> sample_ids;     // this rank's, in order
  std::vector<int64_t> targets;        // label per sample; kNoTarget for one that was skipped (its pixels are zero)
  std::vector<float> images;           // [samples, image_size, image_size, 3], normalised (NHWC); of data.pixels fp32
  std::vector<uint16_t> halves;        // likewise of bf16: the upper half of a float, rounded to even
  std::vector<uint8_t> bytes;          // likewise of uint8: 0 to 255, not normalised
  image::Normalisation normalisation;  // what bytes still need
  double wait_seconds = 0;             // how long next() waited for it

  int64_t size() const { return static_cast<int64_t>(sample_ids.size()); }
};

struct ReadCounts {
  int64_t bytes = 0;
  int64_t reads = 0;
};

struct BadSample {
  int64_t id = 0;
  std::string path;
  std::string reason;
};

enum class Use { train, evaluate };  // shuffled and augmented, or in order with a centre crop

struct LoaderOptions {
  spec::Data data;
  Use use = Use::train;
  int64_t global_batch = 32;
  int64_t seed = run::kDefaultSeed;
  int64_t rank = 0;
  int64_t num_ranks = 1;
  int64_t num_slices = 0;   // virtual ranks: a rank gets whole slices of the batch (order.h); 0: no slices
  int64_t threads = 1;      // decode threads; 0: as many as this process has cores
  int64_t free_cores = 0;   // the first cores of the process that decode threads stay off, if twice as many remain
  int64_t prefetch = 4;     // batches in flight at most; fewer when data.memory is short
  double memory_share = 1;  // of data.memory; the rest is another loader's
  int64_t batches = -1;     // no more than these are given, and read; -1: an evaluation ends with its epoch
  bool augment = true;      // false with Use::train: shuffled order, centre crop (cached features)
};

// What data.order comes to for this collection: by_storage is windows for shards on a network file system, else full.
// User error: windows of anything but shards.
spec::SampleOrder settle_order(const Collection& collection, spec::SampleOrder wish);

// Gives batches in the order fixed by (seed, epoch): step s of an epoch holds the samples (shuffled to train)
// [s * B, min((s + 1) * B, N)), of which rank r takes the contiguous slice [r * n / R, (r + 1) * n / R).
// The last, smaller batch is given too. All that it holds stays within data.memory (of files of their own, the largest
// of which nobody knows beforehand, all but the threads' pictures). Decoding runs on its own threads; a pixel depends
// on (seed, epoch, sample) only, never on threads or ranks.
class Loader {
 public:
  virtual ~Loader() = default;
  // Goes on to the next epoch by itself (train); past the end of one epoch global_size is 0 (evaluate).
  // A rank's share may be empty while others have one: only global_size says that it is over.
  // Under on_bad_sample: stop, a user error that names the first file of the batch that cannot be read.
  virtual Batch next() = 0;
  // Optional: hands a used batch's memory back for the next one.
  virtual void recycle(Batch&& batch) = 0;
  virtual int64_t steps_per_epoch() const = 0;
  virtual run::LoaderState state() const = 0;  // after the last batch that next() returned
  virtual StageSeconds stages() const = 0;     // of all threads, since the start
  virtual int64_t num_threads() const = 0;
  virtual ReadCounts reads() const = 0;  // of shards, so far
  // Skipped so far in what next() returned, each once (on_bad_sample: skip).
  virtual std::vector<BadSample> bad_samples() const = 0;
};

// Starts at `from`, which another number of ranks may have left. `collection` must outlive the loader.
// User error: no samples, fewer than two classes to train on, a `from` of another seed (once it has begun), a
// data.memory that two batches do not fit into.
std::unique_ptr<Loader> make_loader(const Collection& collection, const LoaderOptions& options,
                                    const run::LoaderState& from);

// The pixels that evaluation shows the network for one image: [image_size, image_size, 3], normalised (NHWC).
// User error that names the path when it cannot be read.
std::vector<float> load_image(const std::string& path, const spec::Data& data);

}  // namespace lockstep::loader
