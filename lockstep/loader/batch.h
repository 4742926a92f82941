// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/image/resample.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/field.h"

namespace lockstep::loader {

// One rank's share of one global batch, ready for the network.
struct Batch {
  int64_t step = 0;         // global step
  int64_t epoch = 0;        // the epoch all its samples belong to
  int64_t global_size = 0;  // rows in the whole batch, all ranks; those that were not read count here, not in a loss
  std::vector<int64_t> sample_ids;        // this rank's, in order
  std::vector<task::FieldValues> fields;  // as the task declares them
  // By row. 0: could not be read (`on_bad_sample: skip`). It keeps its row, so that every rank knows every batch's
  // shape without a message, but has no part in loss, gradient or score: who averages over the batch divides by the
  // rows that were read, summed over the ranks.
  std::vector<uint8_t> was_read;
  std::vector<std::string> annotations = {};  // by row, Encoder::annotation(); none in training
  image::Normalisation normalisation;         // what an image of bytes still needs
  double wait_seconds = 0;                    // how long next() waited for it

  int64_t size() const { return static_cast<int64_t>(sample_ids.size()); }
  // REQUIRES: there is a field of that name.
  const task::FieldValues& field(const std::string& name) const;
};

// `rows` synthetic samples from `first` on, labels in turn: for who measures a step and needs no loader.
Batch draw_batch(const spec::Job& job, int64_t first, int64_t rows);

}  // namespace lockstep::loader
