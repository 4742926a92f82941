// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/job_changes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/job.h"

namespace lockstep::run {
namespace {

using base::Json;

// Keys, and sections with a dot behind them. Any other key changes the result: a new one counts as such until it stands
// here. Data may lie elsewhere: that they are the same samples is known by their fingerprints.
constexpr std::string_view kHarmless[] = {
    "data.train",
    "data.validate",
    "data.test",
    "data.samples",
    "data.on_bad_sample",
    "data.threads",
    "data.memory",
    "data.order",  // with extent and window: where they count, identity() has them
    "data.extent",
    "data.window",
    "data.stage",
    "model.weights",  // the checkpoint has newer ones
    "training.micro_batch",
    "training.recompute",
    "training.zero",
    "training.threads",
    "training.max_nonfinite_steps",
    "training.max_rewinds",
    "training.spike_factor",
    "training.check_sync_every",
    "training.replay_every",
    "evaluation.",
    "checkpoint.",
    "limits.",
};
constexpr std::string_view kLength[] = {"training.epochs", "training.steps", "training.early_stop."};

bool is_listed(const auto& table, std::string_view key) {
  return std::any_of(std::begin(table), std::end(table),
                     [&](std::string_view row) { return row.ends_with('.') ? key.starts_with(row) : key == row; });
}

ChangeKind kind_of(std::string_view key) {
  if (is_listed(kHarmless, key)) return ChangeKind::harmless;
  return is_listed(kLength, key) ? ChangeKind::length : ChangeKind::result;
}

// Values by names of the user's own are one value, in whatever order: no default has any of the names.
bool is_map(const Json& value, const Json* fresh) {
  return value.is_object() && fresh && fresh->is_object() && fresh->size() == 0;
}

bool is_same(const Json& was, const Json& now) {
  if (!was.is_object() || !now.is_object()) return was == now;
  return was.size() == now.size() && std::all_of(now.members().begin(), now.members().end(), [&](const auto& member) {
           const Json* before = was.find(member.key);
           return before && *before == member.value;
         });
}

void collect_changes(const Json* was, const Json& now, const Json* otherwise, const std::string& prefix,
                     std::vector<JobChange>& found) {
  for (const auto& member : now.members()) {
    const std::string key = prefix.empty() ? member.key : base::text(prefix, ".", member.key);
    const Json* before = was && was->is_object() ? was->find(member.key) : nullptr;
    const Json* fresh = otherwise && otherwise->is_object() ? otherwise->find(member.key) : nullptr;
    if (member.value.is_object() && !is_map(member.value, fresh)) {
      collect_changes(before, member.value, fresh, key, found);
      continue;
    }
    const Json* compared = before ? before : fresh;
    if (compared && !is_same(*compared, member.value)) found.push_back({key, *compared, member.value, kind_of(key)});
  }
}

}  // namespace

std::string JobChange::text() const {
  return base::text(key, ": ", was.dump(-1), " -> ", now.dump(-1));
}

Json JobChange::to_json() const {
  Json row = Json::object();
  row["key"] = key;
  row["was"] = was;
  row["now"] = now;
  return row;
}

std::vector<JobChange> job_changes(const Json& was, const Json& now) {
  std::vector<JobChange> found;
  const Json otherwise = spec::to_json(spec::Job{});
  collect_changes(&was, now, &otherwise, "", found);
  return found;
}

void refuse_changes(const std::vector<JobChange>& changes, const std::string& run, int64_t step) {
  std::string all;
  for (const JobChange& change : changes) {
    if (change.kind == ChangeKind::result) all += "\n  " + change.text();
  }
  if (all.empty()) return;
  throw base::Error(base::Blame::user,
                    base::text(run, ": the run has trained ", step, " steps with other settings:", all),
                    "go on with the old ones, start over with --run OTHER_FOLDER, or --accept-changes to train on with "
                    "the new ones");
}

}  // namespace lockstep::run
