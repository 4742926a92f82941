// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/trained.h"

#include <ATen/Parallel.h>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/collection.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/threads.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::training {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

struct Source {
  Path run;
  Path job;
  Path weights;
  std::vector<std::string> notes;
};

// The end result, or while there is none the best checkpoint; of a checkpoint the moving average when there is one,
// because that is what training was evaluated by.
void find_weights(Source& source) {
  const run::RunPaths paths{source.run};
  source.weights = paths.weights();
  if (std::filesystem::exists(source.weights)) return;
  const run::Found found = run::CheckpointStore(paths.checkpoints()).best();
  source.notes = found.passed_over;
  if (!found.checkpoint) {
    throw Error(Blame::user, text(source.run.string(), ": this run has no weights yet, and no good checkpoint"),
                text("go on training: lockstep train ", base::shell_path(paths.job().string()), " --run ",
                     base::shell_path(source.run.string())));
  }
  const Path average = found.checkpoint->file("ema.safetensors");
  source.weights = std::filesystem::exists(average) ? average : found.checkpoint->file("weights.safetensors");
}

Source find_source(const TrainedOptions& options) {
  Source source;
  if (std::filesystem::is_directory(options.source)) {
    source.run = run::open_run(options.source).root;
    source.job = options.job.empty() ? run::RunPaths{source.run}.job() : options.job;
    find_weights(source);
    return source;
  }
  if (!std::filesystem::exists(options.source)) {
    throw Error(Blame::user, text(options.source.string(), ": there is no such run folder or weights file"),
                "check the path: ls runs");
  }
  source.weights = options.source;
  source.job = options.job;
  const Path beside = options.source.parent_path() / "job.json";
  if (source.job.empty() && std::filesystem::exists(beside)) source.job = beside;
  if (source.job.empty()) {
    throw Error(Blame::user, text(options.source.string(), ": these weights do not say which job they belong to"),
                "add --job JOB.json, or give the run folder");
  }
  return source;
}

std::vector<std::string> names_from(const base::Json& array) {
  std::vector<std::string> names;
  for (const auto& item : array.items()) names.push_back(item.as_string());
  return names;
}

// The weights file itself, the state of the checkpoint it lies in, or the training data.
std::vector<std::string> class_names(const Source& source, const spec::Job& job) {
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
  return loader::scan_folder(job.data.train).classes;
}

}  // namespace

Trained load_trained(const TrainedOptions& options) {
  const Source source = find_source(options);
  spec::Job job = spec::load_job(source.job, options.sets);
  std::vector<std::string> classes;
  if (task::make_task(job)->learns_classes()) classes = class_names(source, job);
  const std::shared_ptr<const task::Task> task = task::make_task(job, classes);
  job.model.classes = task->num_outputs();
  Trained trained{job,
                  task,
                  objective::make_objective(job),
                  std::move(classes),
                  model::make_network(job.model, job.data.image_size, 0, options.device),
                  source.run,
                  source.weights,
                  source.notes};
  const auto report = model::load_weights_from(trained.network, trained.weights);
  if (report.fresh.empty()) return trained;
  throw Error(Blame::user,
              text(trained.weights.string(), ": '", report.fresh.front(),
                   "' is made for another number of classes than ", job.model.classes),
              "give the job and the data that these weights were trained with");
}

std::string use_threads(const spec::Job& job) {
  const run::ThreadChoice choice = run::choose_threads(job.training);
  at::set_num_threads(static_cast<int>(choice.threads));
  return choice.why;
}

}  // namespace lockstep::training
