// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "lockstep/step/feeder.h"
#include "lockstep/training/session.h"

namespace lockstep::training {

// Where a stage's batches come from.
struct Session::Source {
  std::unique_ptr<loader::Loader> loader;   // images, or
  std::optional<Features> train;            // cached features of the frozen blocks
  std::optional<Features> validate;         // likewise
  loader::Batch batch;                      // keeps the memory of the samples in use
  std::unique_ptr<step::Feeder> feeder;     // of `loader`, one step ahead; null: each batch goes when it is needed
  loader::Bottleneck told = {};             // the last one that was said
  loader::StageSeconds stages_before = {};  // at the beginning of the epoch, or of this sitting in it
  double seconds = 0;                       // of the steps since then
  double waited = 0;                        // of these, for batches
};

}  // namespace lockstep::training
