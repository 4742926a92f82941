// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/trained_weights.h"

#include <charconv>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/collections.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/store/store.h"
#include "lockstep/store/version.h"
#include "lockstep/task/task.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::store {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

// "best, step 1200, top-1 92.93 %"
std::string describe(const char* name, int64_t step, const base::Json& state) {
  std::string words = text(name, ", step ", step);
  if (const base::Json* evaluation = state.find("evaluation")) {
    words += text(", ", task::ScoreSummary::from_json(*evaluation).headline.text);
  }
  return words;
}

// Which weights of a run: one rule for all that read one.
class WeightsOfRun {
 public:
  explicit WeightsOfRun(TrainedWeights& source) : source_(source), paths_{source.run}, store_(paths_.checkpoints()) {}

  void find(const std::string& which) {
    const bool marked = std::filesystem::exists(paths_.checkpoints() / "best");
    if (which == "best" && !marked) {
      throw Error(Blame::user, text(source_.run.string(), ": no evaluation has marked weights of this run as the best"),
                  "--weights last; a best one needs data.validate in the job");
    }
    if (which == "last" || (which.empty() && !marked)) return take_last();
    if (which == "best" || which.empty()) return take_best();
    take_step(which);
  }

 private:
  bool is_finished() const { return std::filesystem::exists(paths_.weights()); }

  // Of a checkpoint the moving average when there is one, because that is what training was evaluated by. The weights
  // of the last one are those that the run ended with.
  void take(const char* name, const run::Checkpoint& checkpoint) {
    source_.which = describe(name, checkpoint.step, checkpoint.state);
    source_.step = checkpoint.step;
    const auto newest = run::newest_stamp(paths_.checkpoints());
    const Path average = checkpoint.file("ema.safetensors");
    if (is_finished() && newest && newest->step == checkpoint.step) {
      source_.weights = paths_.weights();
    } else {
      source_.weights = std::filesystem::exists(average) ? average : checkpoint.file("weights.safetensors");
    }
  }

  void pass_over(const run::Found& found) {
    for (const auto& line : found.passed_over) source_.notes.push_back("passed over: " + line);
  }

  void take_best() {
    const run::Found found = store_.best();
    if (!found.checkpoint) return take_last();
    pass_over(found);
    take(found.passed_over.empty() ? "best" : "newest good checkpoint", *found.checkpoint);
  }

  void take_last() {
    if (is_finished()) {  // without a look into a checkpoint, which may be large
      source_.weights = paths_.weights();
      const auto newest = run::newest_stamp(paths_.checkpoints());
      source_.which = newest ? text("last, step ", newest->step) : "last";
      if (newest) source_.step = newest->step;
      return;
    }
    const run::Found found = store_.newest();
    pass_over(found);
    if (found.checkpoint) return take("last", *found.checkpoint);
    throw Error(Blame::user, text(source_.run.string(), ": this run has no weights yet, and no good checkpoint"),
                text("go on training: lockstep train ", base::shell_path(paths_.job().string()), " --run ",
                     base::shell_path(source_.run.string())));
  }

  void take_step(const std::string& which) {
    int64_t step = 0;
    const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), step);
    if (error != std::errc() || end != which.data() + which.size() || step < 1) {
      throw Error(Blame::user, text("--weights ", which), "best, last, or a step: --weights 1200");
    }
    const run::Found found = store_.newest(step);
    if (!found.checkpoint || found.checkpoint->step != step) {
      throw Error(Blame::user, text(source_.run.string(), " has no good checkpoint of step ", step),
                  text("ls ", base::shell_path(paths_.checkpoints().string()),
                       "; checkpoint.keep and milestone_epochs say which stay"));
    }
    take("checkpoint", *found.checkpoint);
  }

  TrainedWeights& source_;
  run::RunPaths paths_;
  run::CheckpointStore store_;
};

std::vector<std::string> names_from(const base::Json& array) {
  std::vector<std::string> names;
  for (const auto& item : array.items()) names.push_back(item.as_string());
  return names;
}

TrainedWeights of_version(const Version& version) {
  check(version);
  TrainedWeights found;
  found.trust = version.folder;
  found.job = version.job();
  found.weights = version.weights();
  found.which = text(version.title(), " (", version.id.substr(0, 12), ")");
  return found;
}

// Its folder or a copy of it is no run: nothing is ever written into it.
TrainedWeights in_version_folder(const Path& folder) {
  TrainedWeights found;
  found.trust = folder;
  found.job = folder / "job.json";
  found.weights = folder / "weights.safetensors";
  return found;
}

}  // namespace

TrainedWeights find_weights(const Path& source, const std::string& which, const Path& job) {
  TrainedWeights found;
  const bool is_version = base::is_there(source / kManifestName);
  if (std::filesystem::is_directory(source) && !is_version) {
    found.run = run::open_run(source).root;
    found.trust = found.run;
    found.job = job.empty() ? run::RunPaths{found.run}.job() : job;
    WeightsOfRun(found).find(which);
    return found;
  }
  if (!which.empty()) {
    throw Error(Blame::user, text("--weights ", which, ": ", source.string(), " is not a run folder"),
                "give the run folder, or leave --weights out");
  }
  if (is_version) return in_version_folder(source);
  if (const auto reference = find_reference(source.string()))
    return of_version(resolve(reference->store, reference->name));
  if (!std::filesystem::exists(source)) {
    throw Error(Blame::user, text(source.string(), ": there is no such run folder or weights file"),
                "check the path: ls runs; of a store: STORE/NAME:TAG");
  }
  found.weights = source;
  found.job = job;
  const Path beside = source.parent_path() / "job.json";
  if (found.job.empty() && std::filesystem::exists(beside)) found.job = beside;
  if (!found.job.empty()) return found;
  throw Error(Blame::user, text(source.string(), ": these weights do not say which job they belong to"),
              "add --job JOB.json, or give the run folder");
}

std::vector<std::string> class_names(const TrainedWeights& source, const spec::Job& job) {
  if (source.weights.extension() == ".safetensors") {
    const weights::SafetensorsFile file(source.weights);
    const auto found = file.metadata().find("classes");
    if (found != file.metadata().end()) return names_from(base::parse_json(found->second, source.weights.string()));
  }
  const Path state = source.weights.parent_path() / "state.json";
  if (std::filesystem::exists(state)) {
    const base::Json document = base::read_json(state, {.max_bytes = size_t{64} << 20});
    if (const base::Json* names = document.find("classes")) return names_from(*names);
  }
  if (job.data.train == "synthetic") return loader::synthetic_collection(1, job.model.classes).classes;
  return loader::scan_for(job, job.data.train).classes;
}

}  // namespace lockstep::store
