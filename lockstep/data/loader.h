// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"

namespace lockstep::data {

// A labelled collection: what there is, not yet any pixel. `id` is the index in `samples`, the same on every rank.
struct Sample {
  std::string path;
  int32_t label = 0;
};

struct Collection {
  std::string root;
  std::vector<std::string> classes;  // label -> name, sorted
  std::vector<Sample> samples;       // sorted by class, then file name

  std::string fingerprint() const;  // SHA-256 over classes, names and labels: a resume refuses another one
};

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
  std::vector<int64_t> sample_ids;  // this rank's, in order
  std::vector<int64_t> targets;     // label per sample; kNoTarget for one that was skipped (its pixels are zero)
  std::vector<float> images;        // [samples, image_size, image_size, 3], normalised (NHWC)
  double wait_seconds = 0;          // how long next() waited for it

  int64_t size() const { return static_cast<int64_t>(sample_ids.size()); }
};

struct LoaderState {  // everything that says which sample comes next, on any number of ranks
  int64_t seed = 0;
  int64_t epoch = 0;
  int64_t consumed = 0;  // samples of this epoch already given, all ranks together

  bool operator==(const LoaderState&) const = default;
  base::Json to_json() const;
  static LoaderState from_json(const base::Json& value);
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
  int64_t seed = 1;
  int64_t rank = 0;
  int64_t num_ranks = 1;
  int64_t threads = 1;   // decode threads
  int64_t prefetch = 4;  // batches in flight at most
  bool augment = true;   // false with Use::train: shuffled order, centre crop (cached features)
};

// Gives batches in the order fixed by (seed, epoch): step s of an epoch holds the shuffled samples
// [s * B, min((s + 1) * B, N)), of which rank r takes the contiguous slice [r * n / R, (r + 1) * n / R).
// The last, smaller batch is given too. Decoding runs on its own threads; a pixel depends on (seed, epoch, sample)
// only, never on threads or ranks.
class Loader {
 public:
  virtual ~Loader() = default;
  virtual Batch next() = 0;  // goes on to the next epoch by itself (train); past the end of one epoch: empty (evaluate)
  virtual int64_t steps_per_epoch() const = 0;
  virtual LoaderState state() const = 0;                   // after the last batch that next() returned
  virtual std::vector<BadSample> bad_samples() const = 0;  // skipped so far (on_bad_sample: skip)
};

Collection scan_folder(const std::string& root);

// Starts at `from`. User error for an empty class, no class, a missing folder. `collection` must outlive the loader.
std::unique_ptr<Loader> make_loader(const Collection& collection, const LoaderOptions& options,
                                    const LoaderState& from);

// "synthetic" data: `samples` random images of `classes` classes, no files; for plan and bench.
Collection synthetic_collection(int64_t samples, int64_t classes);

}  // namespace lockstep::data
