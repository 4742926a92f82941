// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/training/session_source.h"
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

}  // namespace

// data.on_bad_sample skip passes over bad samples, not over a file system that is gone.
void Session::check_readable(const step::StepResult& result, int64_t rows, const Source& source) {
  unread_ = result.samples > 0 ? 0 : unread_ + rows;
  const auto all = static_cast<int64_t>(collections_.train.samples.size());
  if (unread_ < std::min(kMostUnread, all)) return;
  report_bad_samples(source.loader.get());
  throw Error(Blame::machine,
              text("step ", step_, ": not one of the last ", unread_, " training samples could be read"),
              text("is the file system still there? ls ", job_.data.train, "; when it is, the same command goes on"));
}

void Session::check_finite(const step::StepResult& result) {
  nonfinite_ = result.finite ? 0 : nonfinite_ + 1;
  if (result.skipped && ledger_) {  // how amp finds its loss scale: no fault
    Json fields = Json::object();
    fields["step"] = step_;
    ledger_->note("loss_scale_halved", fields);
  }
  if (result.finite) return;
  if (ledger_) {
    Json fields = Json::object();
    fields["step"] = step_;
    ledger_->note("nonfinite", fields);
    ledger_->say(text("step ", step_, ": loss or gradient is not finite; the step was left out"));
  }
  if (nonfinite_ < job_.training.max_nonfinite_steps) return;
  const std::string what =
      text("no finite loss in ", nonfinite_, " steps in a row (training.max_nonfinite_steps), up to step ", step_,
           ", at learning rate ", timetable_.learning_rate(step_ - 1));
  const std::string stays = rewind(what);
  if (stays.empty()) return;
  throw Error(Blame::user, text(what, "; ", stays),
              text("lower training.optimizer.lr, lengthen training.schedule.warmup_epochs, or set training.clip_norm=1",
                   stays == kNoCheckpoint ? "" : "; the last checkpoint is good: the same command goes on from it"));
}

void Session::check_spike(const step::StepResult& result) {
  if (!result.finite || result.skipped) return;
  const std::string spike = spikes_.judge(result.loss, result.gradient_norm);
  if (spike.empty()) return;
  const std::string what = text("step ", step_, ": ", spike, " (training.spike_factor)");
  const std::string stays = rewind(what);
  if (stays.empty()) return;
  throw Error(Blame::user, text(what, "; ", stays),
              "lower training.optimizer.lr, set training.clip_norm=1, or training.spike_factor=0 to let it pass");
}

// Back to the newest good checkpoint; when that did not lead beyond the place last time, to the one before it. The run
// goes on with the batches behind those that led here, which are not shown again.
std::string Session::rewind(const std::string& why) {
  settle(Wait::yes);
  if (step_ > rewound_from_) rewinds_ = 0;
  if (job_.training.max_rewinds == 0) return "training.max_rewinds is 0: it does not go back";
  if (rewinds_ >= job_.training.max_rewinds) {
    return text(rewinds_, rewinds_ == 1 ? " rewind has" : " rewinds have", " not led beyond it (training.max_rewinds)");
  }
  std::string found;
  if (folder_) {
    const run::CheckpointStore store(folder_->paths().checkpoints(), options_.disk);
    const int64_t at_most = rewinds_ > 0 ? rewound_to_ - 1 : std::numeric_limits<int64_t>::max();
    auto good = store.newest(at_most).checkpoint;
    if (!good) good = store.newest().checkpoint;
    if (good) found = good->folder.string();
  }
  found = comm::broadcast_text(group_, found);
  if (found.empty()) return kNoCheckpoint;
  const int64_t from = step_;
  assemble_();  // what is restored goes into whole weights
  restore(found);
  data_shift_ += from - step_;
  ++rewinds_, ++num_rewinds_;
  rewound_from_ = std::max(rewound_from_, from);
  rewound_to_ = step_;
  rewound_ = true;
  nonfinite_ = 0;
  next_look_ = 0;
  spikes_.forget();
  if (history_) history_->rewound(step_, data_shift_);
  if (!ledger_) return "";
  Json fields = Json::object();
  fields["step"] = step_;
  fields["from"] = from;
  fields["checkpoint"] = base::Path(found).filename().string();
  fields["reason"] = why;
  fields["data_shift"] = data_shift_;
  ledger_->rewound(from, fields);
  ledger_->say(text(why, ": back to step ", step_, "; the data of the ", from - step_,
                    " steps since then are left out, the next step takes those behind them"));
  return "";
}

void Session::check_ranks_agree(bool saves) {
  const int64_t every = job_.training.check_sync_every;
  if (every == 0 || group_.size() == 1 || (step_ % every != 0 && !saves)) return;
  // Of weights in parts (training.zero 3) no rank has what another has.
  check_sync(group_, job_.training.zero == 3 ? network_.buffers() : model::all_tensors(network_), step_);
}

namespace {

std::vector<model::Named> copies_of(const std::vector<model::Named>& tensors) {
  std::vector<model::Named> copies;
  copies.reserve(tensors.size());
  for (const auto& entry : tensors) copies.push_back({entry.name, entry.tensor.detach().clone()});
  return copies;
}

void put_back(const std::vector<model::Named>& copies, const std::vector<model::Named>& into) {
  for (size_t i = 0; i < copies.size(); ++i) into[i].tensor.detach().copy_(copies[i].tensor);
}

}  // namespace

// The step; when it is the turn of one, computed twice from the same state: a sound machine gives the same bits.
step::StepResult Session::replayed(step::Step& step, const step::Samples& samples, double lr, bool want_stop) {
  const int64_t every = job_.training.replay_every;
  if (every == 0 || (step_ + 1) % every != 0) return step.run(samples, lr, want_stop);
  step.assemble();
  std::vector<model::Named> live = model::all_tensors(network_);
  if (ema_) live.insert(live.end(), ema_->averages().begin(), ema_->averages().end());
  const auto before = copies_of(live);
  const auto state_before = copies_of(step.state());
  step.run(samples, lr, want_stop);
  step.assemble();
  const at::Tensor first = fingerprints(live), first_state = fingerprints(step.state());
  put_back(before, live);
  step.load_state(state_before);
  const step::StepResult result = step.run(samples, lr, want_stop);
  step.assemble();
  const bool same = fingerprints(live).equal(first) && fingerprints(step.state()).equal(first_state);
  std::vector<std::string> others;
  const auto answers = group_.all_gather(at::scalar_tensor(same ? 1 : 0, at::kLong));
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].item<int64_t>() == 0) others.push_back(text(rank));
  }
  if (others.empty()) return result;
  throw Error(Blame::machine,
              text("step ", step_ + 1, ", computed twice from the same state, gave other bits on rank ",
                   base::join(others, ", "), " (training.replay_every)"),
              "leave that node out and tell its administrators: processor, memory or card computes wrongly; the last "
              "checkpoint is good");
}

}  // namespace lockstep::training
