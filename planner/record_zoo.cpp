// SPDX-License-Identifier: Apache-2.0
// record_zoo ZOO.json OUT [NETWORK...]: records the steps of the networks that the planner page knows on a simulated
// GPU, each at two batches, and writes OUT/<network>.zoo. Steps of two passes, and evaluations, are checked against a
// trace at a third batch, without an evaluation and with one of another size: what the page computes from it is what
// the program would trace.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/search.h"
#include "lockstep/planning/recorded_zoo.h"
#include "lockstep/planning/traced_job.h"
#include "lockstep/verbs/plan/simulated_tracer.h"

namespace {

using namespace lockstep;
using base::Blame;
using base::Error;
using base::Json;
using base::text;
using planning::ZooEntry;
using planning::ZooKey;

constexpr int64_t kSmall = 16;
constexpr int64_t kLarge = 48;
constexpr int64_t kOther = 40;          // at which a family is checked
constexpr int64_t kOtherEvaluated = 5;  // likewise, of an evaluation

void merge(Json& into, const Json& more) {
  for (const auto& member : more.members()) {
    if (member.value.is_object() && into.contains(member.key)) {
      merge(into[member.key], member.value);
    } else {
      into[member.key] = member.value;
    }
  }
}

spec::Job job_of(const Json& network, const Json& recipe, int64_t classes) {
  Json document = Json::object();
  document["name"] = network.at("name").as_string();
  document["data"]["train"] = "synthetic";
  document["data"]["samples"] = 100000;
  document["model"]["name"] = network.at("name").as_string();
  if (classes > 0) document["model"]["classes"] = classes;
  document["training"]["steps"] = 1;
  merge(document, recipe);
  return spec::parse_job(document);
}

// The kernels that some GPU of the catalogue, or a processor, takes for attention.
std::vector<forecast::Attention> attentions(const std::string& precision) {
  std::vector<forecast::Attention> all{forecast::choose_attention(nullptr, precision)};
  for (const auto& gpu : catalogue::load_embedded().gpus) all.push_back(forecast::choose_attention(&gpu, precision));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Lines of the recording's file.
std::string first_difference(const forecast::Recording& computed, const forecast::Recording& traced) {
  const auto ours = base::split(forecast::print_recording(computed), '\n');
  const auto theirs = base::split(forecast::print_recording(traced), '\n');
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i] != theirs[i]) return text("line ", i + 1, " '", ours[i], "', not '", theirs[i], "'");
  }
  return text(ours.size(), " lines, not ", theirs.size());
}

class ZooRecorder {
 public:
  explicit ZooRecorder(spec::Job job) : job_(std::move(job)) {
    if (job_.model.classes == 0) job_.model.classes = task::make_task(job_)->num_outputs();
    tracer_.norm_check()(alone(), 1, 1);  // a user error where a batch norm needs more than one sample
  }

  std::vector<ZooEntry> record() {
    for (const auto& precision : choices_of(spec::Precision{})) {
      const auto kinds = attentions(precision);
      for (const auto attention : kinds) {
        if (attention != kinds.front() && !attends_) break;  // all alike
        record_levers(precision, attention);
      }
    }
    return std::move(entries_);
  }

 private:
  spec::Job alone() const {
    spec::Job job = job_;
    job.training.global_batch = 1;
    return job;
  }

  void record_levers(const std::string& precision, forecast::Attention attention) {
    add({.pass = ZooKey::Pass::evaluation, .precision = precision, .attention = attention});
    const size_t first = entries_.size();
    for (const int64_t ranks : {1, 2}) {
      for (const int64_t passes : {1, 2}) {
        add({.precision = precision, .attention = attention, .ranks = ranks, .passes = passes});
      }
    }
    for (const auto& blocks : recompute_sets(entries_[first].members)) {
      for (const int64_t passes : {1, 2}) {
        add({.precision = precision, .recompute = blocks, .attention = attention, .passes = passes});
      }
    }
  }

  // Those that the search asks for, whatever the batch: all blocks, a quarter of them, two, three.
  std::vector<std::vector<std::string>> recompute_sets(const std::vector<forecast::Recording>& members) const {
    const auto sets = recompute_sets(members.front());
    if (sets == recompute_sets(members.back())) return sets;
    throw Error(Blame::bug,
                text(job_.model.name, ": other blocks are recomputed at a batch of ", kSmall, " than at ", kLarge),
                "see block_savings() in lockstep/forecast/search.h");
  }
  static std::vector<std::vector<std::string>> recompute_sets(const forecast::Recording& recording) {
    std::vector<std::vector<std::string>> sets{{"all"}};
    for (auto& set : forecast::recompute_sets(forecast::block_savings(recording))) {
      std::sort(set.blocks.begin(), set.blocks.end());  // as a ZooKey has them
      sets.push_back(std::move(set.blocks));
    }
    return sets;
  }

  forecast::Recording trace(const ZooKey& key, int64_t batch, int64_t evaluation_rows) {
    spec::Job job = forecast::with_levers(job_, {key.precision, key.recompute, batch, 0});
    job.training.global_batch = batch * key.passes * key.ranks;
    const planning::SimulatedRank rank{
        .attention = key.attention, .ranks = key.ranks, .rows = batch * key.passes, .evaluation_rows = evaluation_rows};
    return key.pass == ZooKey::Pass::evaluation ? tracer_.evaluation(job, rank) : tracer_.step(job, rank);
  }

  void add(ZooKey key) {
    const bool is_step = key.pass == ZooKey::Pass::step;
    ZooEntry entry{planning::traced_job(job_), key, {}};
    for (const int64_t batch : {kSmall, kLarge}) entry.members.push_back(trace(key, batch, is_step ? batch : 0));
    if (!entry.members.front().attention.empty()) attends_ = true;
    if (!is_step || key.passes > 1) check(entry, is_step);  // one pass is part of two
    if (!attends_) entry.key.attention.reset();
    entries_.push_back(std::move(entry));
  }

  void check(const ZooEntry& entry, bool is_step) {
    planning::RecordedZoo zoo({entry});
    for (const int64_t evaluated : {int64_t{0}, kOtherEvaluated}) {
      if (!is_step && evaluated > 0) continue;
      spec::Job job = forecast::with_levers(job_, {entry.key.precision, entry.key.recompute, kOther, 0});
      const planning::SimulatedRank rank{.attention = entry.key.attention,
                                         .ranks = entry.key.ranks,
                                         .rows = kOther * entry.key.passes,
                                         .evaluation_rows = evaluated};
      const auto computed = is_step ? zoo.step(job, rank) : zoo.evaluation(job, rank);
      const auto traced = trace(entry.key, kOther, evaluated);
      if (computed == traced) continue;
      throw Error(Blame::bug,
                  text(job_.model.name, ", ", entry.key.precision, ", ", entry.key.ranks, " ranks, ", entry.key.passes,
                       " passes: the recording at a batch of ", kOther, " does not follow from those at ", kSmall,
                       " and ", kLarge, " (evaluation of ", evaluated, "): ", first_difference(computed, traced)),
                  "see lockstep/forecast/family.h: it needs a third recording");
    }
  }

  spec::Job job_;
  verbs::plan::SimulatedTracer tracer_;
  std::vector<ZooEntry> entries_;
  bool attends_ = false;
};

void record(const Json& zoo, const Json& network, const base::Path& folder) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ZooEntry> entries;
  for (const Json& recipe : network.at("recipes").items()) {
    for (const Json& classes : network.at("classes").items()) {
      ZooRecorder recorder(job_of(network, zoo.at("recipes").at(recipe.as_string()), classes.as_int()));
      for (auto& entry : recorder.record()) entries.push_back(std::move(entry));
    }
  }
  const std::string content = planning::print_zoo(entries);
  const std::string& name = network.at("name").as_string();
  base::write_file(folder / (name + ".zoo"), content);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%s: %zu steps, %zu bytes, %.1f s\n", name.c_str(), entries.size(), content.size(), seconds.count());
  std::fflush(stdout);
}

int record_all(const std::vector<std::string>& words) {
  if (words.size() < 2) throw Error(Blame::user, "record_zoo ZOO.json OUT [NETWORK...]", "name the file and a folder");
  const Json zoo = base::read_json(words[0]);
  base::make_folders(words[1]);
  for (const Json& network : zoo.at("networks").items()) {
    const bool wanted =
        words.size() == 2 || std::find(words.begin() + 2, words.end(), network.at("name").as_string()) != words.end();
    if (wanted) record(zoo, network, words[1]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return record_all(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const base::Error& error) {
    std::fprintf(stderr, "record_zoo: %s\n  fix: %s\n", error.what(), error.fix().c_str());
    return static_cast<int>(error.blame());
  }
}
