// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/guard.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/training/bad_samples.h"
#include "lockstep/training/starting_point.h"
#include "lockstep/training/sync_check.h"

namespace lockstep::training {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

namespace {

constexpr const char* kNoCheckpoint = "there is no checkpoint to go back to yet";

// A small batch may happen to have no good sample; so many in a row have another reason.
constexpr int64_t kMostUnread = 8;

Json only_step(int64_t step) {
  Json fields = Json::object();
  fields["step"] = step;
  return fields;
}

}  // namespace

bool Guard::accepts(const step::StepResult& result, int64_t rows, step::Step& step, const Feed& feed) {
  check_readable(result, rows, feed);
  return check_finite(result, step) == Fate::goes_on && check_spike(result, step) == Fate::goes_on;
}

// data.on_bad_sample skip passes over bad samples, not over a file system that is gone.
void Guard::check_readable(const step::StepResult& result, int64_t rows, const Feed& feed) {
  unread_ = result.samples > 0 ? 0 : unread_ + rows;
  const auto all = static_cast<int64_t>(context_.collections.train.samples.size());
  if (unread_ < std::min(kMostUnread, all)) return;
  report_bad_samples(context_, feed.loader());
  throw Error(Blame::machine,
              text("step ", context_.state.step, ": not one of the last ", unread_, " training samples could be read"),
              text("is the file system still there? ls ", base::shell_path(context_.job.data.train),
                   "; when it is, the same command goes on"));
}

Guard::Fate Guard::check_finite(const step::StepResult& result, step::Step& step) {
  TrainingState& state = context_.state;
  state.nonfinite = result.finite ? 0 : state.nonfinite + 1;
  if (result.skipped && context_.ledger) {  // how amp finds its loss scale: no fault
    context_.ledger->note("loss_scale_halved", only_step(state.step));
  }
  if (result.finite) return Fate::goes_on;
  if (context_.ledger) {
    context_.ledger->note("nonfinite", only_step(state.step));
    context_.ledger->say(text("step ", state.step, ": loss or gradient is not finite; the step was left out"));
  }
  if (state.nonfinite < context_.job.training.max_nonfinite_steps) return Fate::goes_on;
  const std::string what =
      text("no finite loss in ", state.nonfinite, " steps in a row (training.max_nonfinite_steps), up to step ",
           state.step, ", at learning rate ", context_.timetable.learning_rate(state.step - 1));
  const std::string stays = rewind(what, step);
  if (stays.empty()) return Fate::went_back;
  throw Error(Blame::user, text(what, "; ", stays),
              text("lower training.optimizer.lr, lengthen training.schedule.warmup_epochs, or set training.clip_norm=1",
                   stays == kNoCheckpoint ? "" : "; the last checkpoint is good: the same command goes on from it"));
}

Guard::Fate Guard::check_spike(const step::StepResult& result, step::Step& step) {
  if (!result.finite || result.skipped) return Fate::goes_on;
  const std::string spike = context_.state.spikes.check(result.loss, result.gradient_norm);
  if (spike.empty()) return Fate::goes_on;
  const std::string what = text("step ", context_.state.step, ": ", spike, " (training.spike_factor)");
  const std::string stays = rewind(what, step);
  if (stays.empty()) return Fate::went_back;
  throw Error(Blame::user, text(what, "; ", stays),
              "lower training.optimizer.lr, set training.clip_norm=1, or training.spike_factor=0 to let it pass");
}

// Back to the newest good checkpoint; when that did not lead beyond that step last time, to the one before it. The run
// goes on with the batches behind those that led here, which are not shown again.
std::string Guard::rewind(const std::string& why, step::Step& step) {
  saver_.settle(Saver::Wait::yes);
  TrainingState& state = context_.state;
  const int64_t most = context_.job.training.max_rewinds;
  if (state.step > state.rewound_from) state.rewinds = 0;
  if (most == 0) return "training.max_rewinds is 0: it does not go back";
  if (state.rewinds >= most) {
    return text(state.rewinds, state.rewinds == 1 ? " rewind has" : " rewinds have",
                " not led beyond it (training.max_rewinds)");
  }
  const std::string found = comm::broadcast_text(context_.group, find_checkpoint());
  if (found.empty()) return kNoCheckpoint;
  const int64_t from = state.step;
  step.assemble();  // what is restored goes into whole weights
  restore(context_, found, Restore::rewind);
  state.data_shift += from - state.step;
  ++state.rewinds, ++num_rewinds_;
  state.rewound_from = std::max(state.rewound_from, from);
  state.rewound_to = state.step;
  saver_.forget_look();
  if (context_.history) context_.history->rewound(state.step, state.data_shift);
  if (context_.ledger) tell_rewind(why, from);
  return "";
}

std::string Guard::find_checkpoint() const {
  if (!context_.folder) return "";
  const TrainingState& state = context_.state;
  const run::CheckpointStore store(context_.folder->paths().checkpoints(), context_.options.disk);
  const int64_t at_most = state.rewinds > 0 ? state.rewound_to - 1 : std::numeric_limits<int64_t>::max();
  auto good = store.newest(at_most).checkpoint;
  if (!good) good = store.newest().checkpoint;
  return good ? good->folder.string() : "";
}

void Guard::tell_rewind(const std::string& why, int64_t from) const {
  const TrainingState& state = context_.state;
  Json fields = only_step(state.step);
  fields["from"] = from;
  fields["checkpoint"] = base::Path(context_.checkpoint).filename().string();
  fields["reason"] = why;
  fields["data_shift"] = state.data_shift;
  context_.ledger->rewound(from, fields);
  context_.ledger->say(text(why, ": back to step ", state.step, "; the data of the ", from - state.step,
                            " steps since then are left out, the next step takes those behind them"));
}

void Guard::check_ranks_agree(bool saves) const {
  const auto& training = context_.job.training;
  const int64_t every = training.check_sync_every, step = context_.state.step;
  if (every == 0 || context_.group.size() == 1 || (step % every != 0 && !saves)) return;
  // Of partitioned weights (training.zero 3) no rank has what another has.
  check_sync(context_.group, training.zero == 3 ? context_.network.buffers() : model::all_tensors(context_.network),
             step);
}

}  // namespace lockstep::training
