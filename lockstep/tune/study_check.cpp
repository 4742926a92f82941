// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_check.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {

using base::Blame;
using base::Error;
using base::text;

void check_study(const Trials& trials, const spec::Study& study, const Space& space, const base::Path& log) {
  if (trials.objectives() != 1) {
    throw Error(Blame::user, text(log.string(), ": '", study.name, "' has ", trials.objectives(), " objectives"),
                "lockstep tunes one; go on with Optuna, or give the study another name");
  }
  if (study.direction != spec::Direction::headline &&
      trials.maximize() != (study.direction == spec::Direction::maximize)) {
    throw Error(
        Blame::user,
        text("direction: the study in ", log.string(), " was begun to ", trials.maximize() ? "maximize" : "minimize"),
        "leave direction out, or give the study another name");
  }
  for (const auto& trial : trials.all()) {
    for (const auto& parameter : space) {
      const auto known = trial.distributions.find(parameter.name);
      if (known == trial.distributions.end()) continue;
      const bool choice = parameter.distribution.kind == Distribution::Kind::choice;
      if (known->second.kind == parameter.distribution.kind &&
          (!choice || known->second.choices == parameter.distribution.choices)) {
        continue;
      }
      throw Error(
          Blame::user,
          text("space.", parameter.name, ": trial ", trial.number, " of the study had ", to_optuna(known->second)),
          "give the study another name: choices and kinds of values do not change within one");
    }
  }
}

}  // namespace lockstep::tune
