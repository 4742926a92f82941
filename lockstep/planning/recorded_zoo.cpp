// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/recorded_zoo.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/family.h"
#include "lockstep/planning/evaluation_part.h"
#include "lockstep/planning/recording_pack.h"
#include "lockstep/planning/traced_job.h"
#include "lockstep/run/job_changes.h"
#include "lockstep/spec/choice_value.h"

namespace lockstep::planning {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using forecast::Recording;

constexpr size_t kMaxIndex = size_t{1} << 24;
constexpr const char* kHowToRecord =
    "the program plans any job: lockstep plan job.json --on all --report plan.html; a PyTorch step of your own is "
    "recorded by lockstep.record(build, \"mine.rec\") (python/README.md): drop that file here";

Json to_json(const ZooKey& key) {
  Json row = Json::object();
  row["evaluation"] = key.pass == ZooKey::Pass::evaluation;
  row["precision"] = key.precision;
  row["recompute"] = Json::array_of(key.recompute);
  row["attention"] = key.attention ? Json(name_of(*key.attention)) : Json();
  row["ranks"] = key.ranks;
  row["passes"] = key.passes;
  return row;
}

ZooKey key_from(const Json& row) {
  ZooKey key;
  if (row.at("evaluation").as_bool()) key.pass = ZooKey::Pass::evaluation;
  key.precision = row.at("precision").as_string();
  for (const Json& block : row.at("recompute").items()) key.recompute.push_back(block.as_string());
  if (!row.at("attention").is_null()) key.attention = spec::choice_value<forecast::Attention>(row.at("attention"));
  key.ranks = row.at("ranks").as_int();
  key.passes = row.at("passes").as_int();
  return key;
}

ZooKey key_of(const spec::Job& job, const SimulatedRank& rank, ZooKey::Pass pass) {
  const int64_t micro = job.training.micro_batch > 0 ? job.training.micro_batch : rank.rows;
  std::vector<std::string> recompute = job.training.recompute;
  std::sort(recompute.begin(), recompute.end());
  return {.pass = pass,
          .precision = name_of(job.training.precision),
          .recompute = std::move(recompute),
          .attention = rank.attention,
          .ranks = rank.ranks,
          .passes = (rank.rows + micro - 1) / micro};
}

// A network without attention has the same recording whatever the GPU would take for it.
bool answers(const ZooKey& recorded, ZooKey asked) {
  if (!recorded.attention) asked.attention.reset();
  return recorded == asked;
}

std::string levers_text(const spec::Job& job, const ZooKey& key) {
  std::string words = text("training.precision ", key.precision);
  if (!key.recompute.empty()) words += text(", training.recompute ", base::join(key.recompute, ","));
  if (key.attention) words += text(", attention ", name_of(*key.attention));
  if (key.ranks > 1) words += text(", ", key.ranks, " ranks");
  if (key.passes > 1) words += ", several passes a step";
  if (key.pass == ZooKey::Pass::evaluation) words += ", an evaluation";
  if (job.training.zero > 0) words += text(", training.zero ", job.training.zero);
  return words;
}

// A whole job document, although nothing of it counts but what traced_job() leaves.
Json document_of(spec::Job traced) {
  traced.name = traced.model.name;
  traced.data.train = "synthetic";
  traced.data.samples = traced.training.steps = 1;
  return spec::changed_json(traced);
}

Recording at_batch(const ZooEntry& entry, int64_t batch) {
  for (const Recording& member : entry.members) {
    if (member.micro_batch == batch) return member;
  }
  return forecast::Family(entry.members).at(batch);
}

}  // namespace

std::string print_zoo(const std::vector<ZooEntry>& entries) {
  Json jobs = Json::array();
  Json rows = Json::array();
  std::vector<spec::Job> known;
  std::vector<Recording> all;
  for (const ZooEntry& entry : entries) {
    auto found = std::find(known.begin(), known.end(), entry.job);
    if (found == known.end()) {
      found = known.insert(found, entry.job);
      jobs.push_back(document_of(entry.job));
    }
    Json row = to_json(entry.key);
    row["job"] = found - known.begin();
    row["members"] = entry.members.size();
    rows.push_back(row);
    // Every other one backwards: neighbours have a batch in common, and with it most of their numbers.
    const bool backwards = rows.size() % 2 == 0;
    const auto first = static_cast<std::ptrdiff_t>(all.size());
    all.insert(all.end(), entry.members.begin(), entry.members.end());
    if (backwards) std::reverse(all.begin() + first, all.end());
  }
  Json index = Json::object();
  index["jobs"] = jobs;
  index["entries"] = rows;
  return index.dump(-1) + "\n" + pack_recordings(all);
}

std::vector<ZooEntry> parse_zoo(std::string_view content, const std::string& source) {
  const size_t end = std::min(content.find('\n'), content.size());
  const Json index = base::parse_json(content.substr(0, end), source, {.max_bytes = kMaxIndex, .comments = false});
  std::vector<spec::Job> jobs;
  for (const Json& job : index.at("jobs").items()) jobs.push_back(traced_job(spec::parse_job(job)));
  std::vector<Recording> all = unpack_recordings(content.substr(std::min(end + 1, content.size())));
  std::vector<ZooEntry> entries;
  size_t next = 0;
  for (const Json& row : index.at("entries").items()) {
    const auto job = static_cast<size_t>(row.at("job").as_int());
    const auto members = static_cast<size_t>(row.at("members").as_int());
    if (job >= jobs.size() || members > all.size() - next) {
      throw Error(Blame::user, text(source, ": its index names more than there is"), "make planner-page");
    }
    ZooEntry& entry = entries.emplace_back(ZooEntry{jobs[job], key_from(row), {}});
    for (size_t i = 0; i < members; ++i) entry.members.push_back(std::move(all[next++]));
  }
  return entries;
}

const ZooEntry& RecordedZoo::find(const spec::Job& job, const SimulatedRank& rank, ZooKey::Pass pass) const {
  const spec::Job traced = traced_job(job);
  const ZooKey key = key_of(job, rank, pass);
  const bool plain = job.training.zero == 0 && !rank.phase && !rank.fills;
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const ZooEntry& entry) {
    return plain && answers(entry.key, key) && entry.job == traced;
  });
  if (found == entries_.end()) refuse(job, key);
  return *found;
}

void RecordedZoo::refuse(const spec::Job& job, const ZooKey& key) const {
  const spec::Job traced = traced_job(job);
  std::string least;  // what differs from the recorded job that is most like it
  size_t fewest = SIZE_MAX;
  for (const ZooEntry& entry : entries_) {
    if (entry.job.model.name != traced.model.name) continue;
    const auto changes = run::job_changes(spec::to_json(entry.job), spec::to_json(traced));
    if (changes.size() >= fewest) continue;
    fewest = changes.size();
    std::vector<std::string> words;
    words.reserve(changes.size());
    for (const auto& change : changes) words.push_back(change.text());
    least = base::join(words, ", ");
  }
  if (fewest == SIZE_MAX) {
    throw Error(Blame::user, text("model.name: no recording of '", job.model.name, "' is in this page"), kHowToRecord);
  }
  const std::string what =
      fewest > 0 ? text("another one is, and differs in: ", least) : text("not with ", levers_text(job, key));
  throw Error(Blame::user, text("this step of ", job.model.name, " is not recorded in this page (", what, ")"),
              kHowToRecord);
}

Recording RecordedZoo::step(const spec::Job& job, const SimulatedRank& rank) {
  const ZooEntry& entry = find(job, rank, ZooKey::Pass::step);
  const int64_t batch = job.training.micro_batch > 0 ? std::min(job.training.micro_batch, rank.rows) : rank.rows;
  Recording recording = at_batch(entry, batch);
  if (!rank.graph) recording = without_graph(std::move(recording));
  if (rank.evaluation_rows == 0) return without_evaluation(recording);
  if (rank.evaluation_rows == batch) return recording;
  Recording other = at_batch(entry, rank.evaluation_rows);
  return with_evaluation_of(recording, rank.graph ? other : without_graph(std::move(other)));
}

Recording RecordedZoo::evaluation(const spec::Job& job, const SimulatedRank& rank) {
  return at_batch(find(job, rank, ZooKey::Pass::evaluation), rank.rows);
}

std::vector<run::FeatureNeeds> RecordedZoo::features(const spec::Job& job, int64_t /*samples*/) {
  const auto& phases = job.training.phases;
  if (std::none_of(phases.begin(), phases.end(), [](const spec::Phase& phase) { return phase.cache_features; })) {
    return {};
  }
  throw Error(Blame::user, "training.phases: cached features are not recorded in this page", kHowToRecord);
}

NormCheck RecordedZoo::norm_check() {
  return [](const spec::Job&, int64_t, int64_t) {};
}

}  // namespace lockstep::planning
