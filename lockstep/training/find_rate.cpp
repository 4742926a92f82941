// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/find_rate.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/collections.h"
#include "lockstep/loader/loader_rules.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/objective/objective.h"
#include "lockstep/run/threads.h"
#include "lockstep/spec/rank_rules.h"
#include "lockstep/step/step.h"

namespace lockstep::training {
namespace {

using base::Json;
using base::text;

constexpr double kMemory = 0.9;  // of the smooth loss
constexpr double kDiverged = 3;  // times the lowest smooth loss
constexpr size_t kShownRows = 20;
constexpr int64_t kFewestSteps = 10;

// The batches of the sweep: epoch after epoch, as training would take them.
class Batches {
 public:
  Batches(const spec::Job& job, const loader::Collection& train, const comm::Group& group, at::Device device)
      : device_(device),
        loader_(loader::make_loader(train,
                                    loader::training_loader(job, {.rank = group.rank(),
                                                                  .ranks = group.size(),
                                                                  .local_ranks = comm::locality().size,
                                                                  .threads = run::compute_threads(job.training),
                                                                  .gpu = device.is_cuda(),
                                                                  .task = task::make_task(job, train.classes)}),
                                    {.seed = job.training.seed})) {}

  step::Samples next(int64_t step) {
    loader_->recycle(std::move(batch_));
    batch_ = loader_->next();
    step::Samples samples = step::to_samples(batch_, device_);
    samples.step = step;
    return samples;
  }

 private:
  at::Device device_;
  std::unique_ptr<loader::Loader> loader_;
  loader::Batch batch_;
};

std::string name_of_phase(const spec::Training& training) {
  if (training.phases.empty()) return "";
  const std::string& from = training.phases.back().train_from;
  return text("phase ", training.phases.size(), from.empty() ? ", the whole network" : ", from block " + from);
}

std::string two_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return text(std::round(value / unit) * unit);
}

}  // namespace

double suggest_rate(const std::vector<RatePoint>& points) {
  double steepest = 0;
  double suggested = 0;
  for (size_t i = 2; i + 2 < points.size(); ++i) {  // a slope over five points: noise is left out
    const double slope = points[i + 2].smooth - points[i - 2].smooth;
    if (slope >= steepest) continue;
    steepest = slope;
    suggested = points[i].rate;
  }
  return suggested;
}

RateSweep find_rate(const spec::Job& given, const RateOptions& options, comm::Group& group) {
  const loader::Collections collections = loader::open_collections(given);
  const spec::Job job = loader::resolve(given, collections);
  spec::check_batch_on_ranks(job.training, group.size());
  at::set_num_threads(static_cast<int>(run::compute_threads(job.training)));
  model::Network network = model::make_network(job, options.device);
  if (!job.model.weights.empty()) model::load_weights_from(network, job.model.weights);
  const spec::Phase phase = job.training.phases.empty() ? spec::Phase() : job.training.phases.back();
  step::Step step(network, group,
                  {.training = job.training,
                   .device = options.device,
                   .train_from = phase.train_from.empty() ? 0 : network.index_of(phase.train_from),
                   .freeze_norm = phase.freeze_norm,
                   .objective = objective::make_objective(job, collections.train.classes)});
  Batches batches(job, collections.train, group, options.device);
  RateSweep sweep;
  sweep.phase = name_of_phase(job.training);
  double mean = 0;
  double lowest = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < options.steps && !sweep.diverged; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(std::max<int64_t>(1, options.steps - 1));
    const double rate = options.lowest * std::pow(options.highest / options.lowest, share);
    const step::StepResult result = step.run(batches.next(i), rate, !options.stop().empty());
    mean = kMemory * mean + (1 - kMemory) * result.loss;
    const double smooth = mean / (1 - std::pow(kMemory, static_cast<double>(i + 1)));
    lowest = std::min(lowest, smooth);
    sweep.diverged = !result.finite || smooth > kDiverged * lowest;
    if (result.finite) sweep.points.push_back({rate, result.loss, smooth});
    if (group.rank() == 0) {
      options.logger.show(text("step ", i + 1, "/", options.steps, "  lr ", rate, "  loss ", base::fixed(smooth, 3)));
    }
    if (result.stop) break;
  }
  if (static_cast<int64_t>(sweep.points.size()) < std::min(kFewestSteps, options.steps)) {
    throw base::Error(base::Blame::user, text("only ", sweep.points.size(), " steps had a finite loss"),
                      "look at the data and at model.weights: even the smallest rate does not work");
  }
  sweep.suggested = suggest_rate(sweep.points) / phase.lr_scale;
  return sweep;
}

Json RateSweep::to_json() const {
  Json all = Json::object();
  all["suggested"] = suggested;
  all["diverged"] = diverged;
  if (!phase.empty()) all["phase"] = phase;
  all["points"] = Json::array();
  for (const RatePoint& point : points) {
    Json row = Json::object();
    row["lr"] = point.rate;
    row["loss"] = point.loss;
    row["smooth_loss"] = point.smooth;
    all["points"].push_back(std::move(row));
  }
  return all;
}

std::string RateSweep::to_text() const {
  base::Table table(
      {{"learning rate", base::Align::right}, {"loss", base::Align::right}, {"smooth", base::Align::right}});
  const size_t every = std::max<size_t>(1, (points.size() + kShownRows - 1) / kShownRows);
  for (size_t i = 0; i < points.size(); i += every) {
    table.add({text(points[i].rate), base::fixed(points[i].loss, 4), base::fixed(points[i].smooth, 4)});
  }
  std::string words = table.to_text() + "\n";
  if (!phase.empty()) words += text("tried: ", phase, "; its lr_scale is accounted for\n");
  if (diverged) words += text("the loss rose far above its lowest at ", points.back().rate, "\n");
  if (suggested == 0) return words + "the loss fell nowhere: nothing to suggest; look at the data and the weights\n";
  return words + text("the loss falls fastest around: --set training.optimizer.lr=", two_digits(suggested), "\n");
}

}  // namespace lockstep::training
