// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/train.h"

#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/loader/loader.h"
#include "lockstep/site/last_words.h"
#include "lockstep/training/session.h"

namespace lockstep::training {

base::Json TrainResult::to_json() const {
  base::Json json = base::Json::object();
  json["finished"] = finished;
  if (!finished) json["stop_reason"] = stop_reason;
  json["step"] = step;
  json["total_steps"] = total_steps;
  json["resumed_at"] = resumed_at;
  json["seconds"] = seconds;
  json["bad_samples"] = bad_samples;
  json["saves"] = saves;
  json["save_seconds"] = save_seconds;
  json["stall_seconds"] = stall_seconds;
  json["stall_share"] = stall_share;
  json["rewinds"] = rewinds;
  if (evaluation) {
    json["headline"] = task::to_json(evaluation->headline);
    for (const auto& member : evaluation->figures.members()) json[member.key] = member.value;
  }
  if (finished) json["weights_sha256"] = weights_sha256;
  if (!state_sha256.empty()) json["state_sha256"] = state_sha256;
  return json;
}

TrainResult train(const spec::Job& job, const TrainOptions& options, comm::Group& group) {
  std::optional<Session> session;
  try {
    session.emplace(job, options, group);
  } catch (const loader::GaveUp& hung) {  // nothing was begun: that is a stop in order
    if (group.size() > 1) {               // the others wait for this one
      site::tell_last_words(hung, group.rank());
      group.abort(base::kExitRequeue);
    }
    options.logger.say(hung.what());
    TrainResult none;
    none.stop_reason = options.stop();
    return none;
  }
  session->resume();
  while (const run::PhaseSpan* span = session->next_phase()) session->run(*span);
  return session->finish();
}

}  // namespace lockstep::training
