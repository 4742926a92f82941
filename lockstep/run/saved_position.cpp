// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/saved_position.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::run {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

namespace {

// A run that rewinds at every step for years has left out fewer batches.
constexpr int64_t kMostShift = int64_t{1} << 40;

[[noreturn]] void contradict(const std::string& folder, const std::string& what) {
  throw Error(Blame::machine, text(folder, "/state.json contradicts itself: ", what),
              "was it changed by hand? move that folder away: the same command goes on from the checkpoint before it");
}

}  // namespace

void check_saved_position(const Json& state, const Timetable& timetable, const std::string& folder) {
  const int64_t step = state.at("step").as_int();
  if (step < 0) contradict(folder, text("step ", step));
  if (step > timetable.total_steps()) {
    throw Error(Blame::user, text(folder, ": ", step, " steps are trained, the job has only ", timetable.total_steps()),
                "raise training.epochs (or steps) again, or start over with --run OTHER_FOLDER");
  }
  const int64_t shift = state.int_or("data_shift", 0);
  const bool went_back = state.int_or("rewound_from", 0) > 0;
  if (shift < 0 || shift > kMostShift || (shift > 0 && !went_back)) {
    contradict(folder, text("data_shift ", shift, went_back ? "" : " without a rewind"));
  }
  if (const Json* epoch = state.find("epoch"); epoch && epoch->as_double() != timetable.epoch_at(step)) {
    contradict(folder, text("step ", step, " is in epoch ", timetable.epoch_at(step), ", not ", epoch->dump(-1)));
  }
  const LoaderState expected = timetable.loader_state(step + shift);
  if (const Json* loader = state.find("loader"); loader && !(LoaderState::from_json(*loader) == expected)) {
    contradict(folder, text("behind step ", step, " and ", shift, " batches left out the data go on at ",
                            expected.to_json().dump(-1), ", not ", loader->dump(-1)));
  }
}

}  // namespace lockstep::run
