// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/records.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

using base::Json;
using base::text;

std::string now_text() {
  return text("\"", iso_time(base::unix_seconds()), "\"");
}

}  // namespace

void record_attr(StudyFile::Update& update, int64_t trial, Attr kind, const std::string& key, const Json& value) {
  update.add(kind == Attr::user ? 8 : 9,
             text("\"trial_id\":", trial, kind == Attr::user ? ",\"user_attr\":{" : ",\"system_attr\":{",
                  base::quote_json(key), ":", value.dump(-1), "}"));
}

void record_new(StudyFile::Update& update, const Space& space, const Values& values) {
  std::string params;
  std::string distributions;
  for (const auto& parameter : space) {
    const auto value = values.find(parameter.name);
    if (value == values.end()) continue;
    const char* comma = params.empty() ? "" : ",";
    const std::string name = base::quote_json(parameter.name);
    params += text(comma, name, ":", number_text(value->second));
    distributions += text(comma, name, ":", base::quote_json(to_optuna(parameter.distribution)));
  }
  update.add(4, text("\"study_id\":", update.trials().study_id(), ",\"datetime_start\":", now_text(),
                     ",\"state\":0,\"params\":{", params, "},\"distributions\":{", distributions,
                     "},\"user_attrs\":{},\"system_attrs\":{\"", kWorkerAttr, "\":", base::quote_json(update.worker()),
                     "},\"intermediate_values\":{}"));
}

void record_claim(StudyFile::Update& update, int64_t trial, const Space& space, Values values) {
  const Trial before = update.trials().by_id(trial);
  if (const Json* fixed = before.system_attrs.find("fixed_params")) {
    for (const auto& parameter : space) {
      const Json* value = fixed->find(parameter.name);
      if (!value) continue;
      const auto& choices = parameter.distribution.choices;
      const auto choice = std::find(choices.begin(), choices.end(), *value);
      if (value->is_number() && choices.empty()) values[parameter.name] = value->as_double();
      if (choice != choices.end()) values[parameter.name] = static_cast<double>(choice - choices.begin());
    }
  }
  update.add(6, text("\"trial_id\":", trial, ",\"state\":0,\"values\":null,\"datetime_start\":", now_text()));
  record_attr(update, trial, Attr::system, kWorkerAttr, update.worker());
  for (const auto& parameter : space) {
    const auto value = values.find(parameter.name);
    if (value == values.end() || before.values.contains(parameter.name)) continue;
    update.add(5, text("\"trial_id\":", trial, ",\"param_name\":", base::quote_json(parameter.name),
                       ",\"param_value_internal\":", number_text(value->second),
                       ",\"distribution\":", base::quote_json(to_optuna(parameter.distribution))));
  }
}

void record_pause(StudyFile::Update& update, int64_t trial) {
  record_attr(update, trial, Attr::system, kPausedAttr, true);
}

void record_release(StudyFile::Update& update, int64_t trial) {
  record_attr(update, trial, Attr::system, kWorkerAttr, "");
}

// In this order: between the two lines it is the paused trial of a worker that is dead, which is released again.
void record_promotion(StudyFile::Update& update, int64_t trial) {
  record_attr(update, trial, Attr::system, kWorkerAttr, update.worker());
  record_attr(update, trial, Attr::system, kPausedAttr, false);
}

void record_postponed(StudyFile::Update& update, int64_t trial) {
  update.add(6, text("\"trial_id\":", trial, ",\"state\":", static_cast<int>(TrialState::waiting), ",\"values\":null"));
  record_release(update, trial);
}

void record_end(StudyFile::Update& update, int64_t trial, TrialState state, std::optional<double> value) {
  update.add(6, text("\"trial_id\":", trial, ",\"state\":", static_cast<int>(state), ",\"values\":",
                     value ? text("[", number_text(*value), "]") : "null", ",\"datetime_complete\":", now_text()));
}

}  // namespace lockstep::tune
