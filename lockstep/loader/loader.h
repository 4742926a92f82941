// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/loader/batch.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/pace.h"
#include "lockstep/loader/store.h"
#include "lockstep/run/loader_state.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::loader {

struct ReadCounts {
  int64_t bytes = 0;
  int64_t reads = 0;
};

struct BadSample {
  int64_t id = 0;
  std::string path;
  std::string reason;
  bool is_used = false;  // without what the reason names
};

// Shuffled and augmented; in order with a centre crop; likewise of samples of which nobody knows what is to be learnt.
enum class Use { train, evaluate, predict };

struct LoaderOptions {
  spec::Data data;
  std::shared_ptr<const task::Task> task = nullptr;  // null: the one that a job of these data has by default
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
  std::function<bool()> give_up = {};  // asked now and then while next() waits, from any thread: true ends the waiting
};

// A batch did not come, and give_up said to wait no longer.
class GaveUp : public base::Error {
 public:
  using base::Error::Error;
};

// What data.order comes to for this collection: by_storage is windows for shards on a network file system, else full.
// User error: windows of anything but shards.
spec::SampleOrder settle_order(const Collection& collection, spec::SampleOrder wish);

// Gives batches in the order fixed by (seed, epoch): step s of an epoch holds the samples (shuffled to train)
// [s * B, min((s + 1) * B, N)), of which rank r takes the contiguous slice [r * n / R, (r + 1) * n / R).
// The last, smaller batch is given too. All that it holds stays within data.memory. Decoding runs on its own threads; a
// pixel depends on (seed, epoch, sample) only, with data.balance on the position in the epoch instead of the sample,
// and never on threads or ranks.
class Loader {
 public:
  virtual ~Loader() = default;
  // Goes on to the next epoch by itself (train); past the end of one epoch global_size is 0 (evaluate).
  // A rank's share may be empty while others have samples: only global_size 0 means the end.
  // Under on_bad_sample: stop, a user error that names the first file of the batch that cannot be read. GaveUp when
  // the options' give_up says so: then nothing was taken.
  virtual Batch next() = 0;
  // Optional: hands a used batch's memory back for the next one.
  virtual void recycle(Batch&& batch) = 0;
  virtual int64_t steps_per_epoch() const = 0;
  virtual run::LoaderState state() const = 0;            // after the last batch that next() returned
  virtual PipelineSeconds pipeline_seconds() const = 0;  // of all threads, since the start
  virtual int64_t num_threads() const = 0;
  virtual ReadCounts reads() const = 0;  // of shards, so far
  // Skipped so far in what next() returned, each once (on_bad_sample: skip).
  virtual std::vector<BadSample> bad_samples() const = 0;
  // Of samples in what next() returned that were used, each once: what of them was left out (Encoder::left_out).
  virtual std::vector<BadSample> left_out() const = 0;
  // Asks all threads to end, and waits that long for them. False: some still read; the loader must not be destroyed.
  virtual bool end_within(double seconds) = 0;
};

// Starts at `from`, which another number of ranks may have left. `collection` must outlive the loader.
// User error: no samples, fewer than two classes for a task that learns them, a `from` of another seed (once it has
// begun), a data.memory that two batches do not fit into.
std::unique_ptr<Loader> make_loader(const Collection& collection, const LoaderOptions& options,
                                    const run::LoaderState& from);
// The same, of samples that lie in `store` (null: where the collection says). Its end waits for reads under way, which
// that of make_loader's does for 5 s only.
std::unique_ptr<Loader> make_waiting_loader(const Collection& collection, const LoaderOptions& options,
                                            const run::LoaderState& from, std::unique_ptr<const Store> store = nullptr);

// The task whose fields a loader with these options fills.
std::shared_ptr<const task::Task> task_of(const LoaderOptions& options);

// The pixels that evaluation shows the network for one image: [height, width, 3], normalised. User error that names the
// path when it cannot be read.
std::vector<float> load_image(const std::string& path, const spec::Data& data);

}  // namespace lockstep::loader
