// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/live.h"

#include <algorithm>

namespace lockstep::watching {
namespace {

using base::Json;

constexpr size_t kMostLivePoints = 600;

}  // namespace

Json live_json(const RunWatch& watch, const Cursor& since, double now) {
  const RunLog& log = watch.log();
  const auto records = static_cast<int64_t>(log.steps.size()),
             evaluations = static_cast<int64_t>(log.evaluations.size());
  const bool reset = since.voids != log.num_voids || since.steps < 0 || since.steps > records ||
                     since.evaluations < 0 || since.evaluations > evaluations;
  Json json = to_json(watch.look(now));
  json["reset"] = reset;
  json["steps"] = thin_steps(log, kMostLivePoints, reset ? 0 : static_cast<size_t>(since.steps));
  json["evaluations"] = Json::array({log.evaluations.begin() + (reset ? 0 : since.evaluations), log.evaluations.end()});
  json["sessions"] = Json::array(log.sessions);
  if (reset && log.start.is_object()) {
    json["start"] = log.start;
    json["start"].erase("class_names");  // a thousand of them in every page help nobody
  }
  json["silent"] = log.last_time > 0 ? std::max(0.0, now - log.last_time) : 0;
  Json cursor = Json::object();
  cursor["voids"] = log.num_voids;
  cursor["steps"] = records;
  cursor["evaluations"] = evaluations;
  json["cursor"] = std::move(cursor);
  return json;
}

}  // namespace lockstep::watching
