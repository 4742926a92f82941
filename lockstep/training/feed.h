// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/step/feeder.h"
#include "lockstep/training/features.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// The first block that this phase trains.
size_t first_trained(const TrainingContext& context, const run::PhaseSpan& span);

// Where the batches of one phase come from, from the step on at which the run stands: the loader, on a GPU through a
// feeder that is one step ahead, or cached features of the frozen blocks.
class Feed {
 public:
  // Every rank calls it. `wants_stop` is asked while features are computed. When any rank wants to stop, the context's
  // stop is set and no batch may be asked for.
  Feed(TrainingContext& context, const run::PhaseSpan& span, const std::function<std::string()>& wants_stop);

  step::Samples next();                                           // this rank's, for the next step of the run
  double wait_seconds() const { return waited_; }                 // of the last next()
  const loader::Batch& batch() const { return batch_; }           // of the last next() without a feeder and features
  const loader::Loader* loader() const { return loader_.get(); }  // null: features
  const std::optional<Features>& validation() const { return validate_; }  // features to validate with; none: images

  void step_took(double seconds);  // with the batch of the last next(), from asking for it on
  void say_pace();                 // after an epoch, on rank 0: when the loader holds the steps up

 private:
  struct What {
    const char* name;  // for people
    size_t to = 0;     // blocks [0, to) are run
    spec::Views views = spec::Views::center;
  };
  std::optional<Features> compute(const loader::Collection& collection, const What& what,
                                  const std::function<std::string()>& wants_stop);

  TrainingContext& context_;
  std::unique_ptr<loader::Loader> loader_;  // images, or
  std::optional<Features> train_;           // cached features of the frozen blocks
  std::optional<Features> validate_;        // likewise
  loader::Batch batch_;                     // keeps the memory of the samples in use
  std::unique_ptr<step::Feeder> feeder_;    // of `loader_`; null: each batch goes when it is needed
  double waited_ = 0;

  struct Pace {
    loader::Bottleneck told = {};         // the last one that was said
    loader::PipelineSeconds before = {};  // at the beginning of the epoch, or of this session in it
    double seconds = 0;                   // of the steps since then
    double waited = 0;                    // of these, for batches
  } pace_;
};

}  // namespace lockstep::training
