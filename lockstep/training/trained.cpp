// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/trained.h"

#include <ATen/Parallel.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/threads.h"
#include "lockstep/store/trained_weights.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::training {

using base::Blame;
using base::Error;
using base::text;

Trained load_trained(const TrainedOptions& options) {
  const store::TrainedWeights source = store::find_weights(options.source, options.which, options.job);
  auto loaded = weights::load_job_for(source.weights, source.job, options.sets);
  spec::Job& job = loaded.job;
  std::vector<std::string> classes;
  if (task::make_task(job)->classes() != task::Classes::none) classes = store::class_names(source, job);
  const std::shared_ptr<const task::Task> task = task::make_task(job, classes);
  job.model.classes = task->num_outputs();
  Trained trained{job,
                  task,
                  objective::make_objective(job),
                  std::move(classes),
                  model::make_network(job, options.device),
                  source.run,
                  source.weights,
                  source.which,
                  source.notes,
                  source.trust};
  for (auto& note : loaded.notes) {
    if (note.starts_with("warning")) trained.notes.push_back(std::move(note));  // the recipe is of no interest here
  }
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
