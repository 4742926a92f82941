// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/collections.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/loader.h"
#include "lockstep/site/command.h"
#include "lockstep/task/task.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::loader {

using base::Blame;
using base::Error;
using base::text;

namespace {

void check_length(const spec::Job& job, const Collection& train) {
  const auto there = static_cast<int64_t>(train.samples.size());
  if (job.data.samples == 0 || job.data.samples == there) return;
  throw Error(Blame::user, text("data.samples is ", job.data.samples, ", but ", job.data.train, " has ", there),
              text("leave data.samples out, or --set data.samples=", there));
}

// The folder may be one level too high: its only class has folders of images in it.
std::string one_class_fix(const Collection& train) {
  std::string words = "a classifier needs two or more: one sub-folder for each";
  if (train.is_synthetic() || train.shards) return words;
  const std::string folder = text(train.root, "/", train.classes.at(0));
  std::set<std::string> below;
  for (const auto& sample : train.samples) {
    const size_t end = sample.path.find('/', folder.size() + 1);
    if (end == std::string::npos) return words;
    below.insert(sample.path.substr(folder.size() + 1, end - folder.size() - 1));
  }
  if (below.size() < 2) return words;
  return text(words, "; if '", *below.begin(), "' and '", *std::next(below.begin()), "' in ", folder,
              " are classes: ", site::shell_words({"--set", "data.train=" + folder}));
}

// Of a task whose samples have no class: what is to be learnt stands in the samples themselves.
Collections open_unlabelled(const spec::Job& job, bool has_classes) {
  const auto open = [&](const std::string& folder) {
    if (folder != "synthetic") return scan_for(job, folder);
    if (job.data.samples > 0) return synthetic_collection(job.data.samples, std::max<int64_t>(1, job.model.classes));
    throw Error(Blame::user, "data.train is \"synthetic\" without data.samples", "for example --set data.samples=1000");
  };
  Collections all;
  all.train = open(job.data.train);
  check_length(job, all.train);
  if (!job.data.validate.empty()) all.validate = open(job.data.validate);
  if (has_classes && all.train.classes.empty()) {
    const bool of_pixels = job.task == spec::Task::segment;
    throw Error(Blame::user, text(job.data.train, " has no classes of ", of_pixels ? "pixels" : "objects"),
                of_pixels ? R"(name them by label: "segment": {"classes": ["background", "cat"]})"
                          : "make shards of annotated images with lockstep prep, from COCO or KITTI");
  }
  return all;
}

}  // namespace

Collection scan_for(const spec::Job& job, const std::string& folder) {
  const auto task = task::make_task(job);
  const task::Classes classes = task->classes();
  if (!task->main_member().empty()) return scan_members(folder, task->main_member());
  if (classes == task::Classes::of_samples) return scan_folder(folder);
  Collection found = scan_images(folder);
  if (classes == task::Classes::none) found.classes.clear();
  if (job.task == spec::Task::segment) found.classes_are = "classes of pixels";
  if (classes == task::Classes::of_words) {
    found.classes.clear();
    if (folder == job.data.train) found.classes = task::read_vocabulary(folder, job.caption.min_count);
    found.classes_are =
        text("words: those that stand ", job.caption.min_count, " times or oftener (caption.min_count)");
  }
  return found;
}

Collections open_collections(const spec::Job& job) {
  Collections all;
  const bool synthetic = job.data.train == "synthetic";
  const task::Classes classes = task::make_task(job)->classes();
  if (classes != task::Classes::of_samples) return open_unlabelled(job, classes != task::Classes::none);
  if (synthetic && (job.data.samples <= 0 || job.model.classes <= 1)) {
    throw Error(Blame::user, "data.train is \"synthetic\" without data.samples or model.classes",
                "for example --set data.samples=1000 --set model.classes=10");
  }
  all.train = synthetic ? synthetic_collection(job.data.samples, job.model.classes) : scan_for(job, job.data.train);
  check_length(job, all.train);
  const auto found = static_cast<int64_t>(all.train.classes.size());
  if (found < 2) {
    throw Error(Blame::user, text(job.data.train, " has one class only: '", all.train.classes.at(0), "'"),
                one_class_fix(all.train));
  }
  if (job.model.classes != 0 && job.model.classes != found) {
    throw Error(Blame::user, text("model.classes is ", job.model.classes, ", but ", job.data.train, " has ", found),
                text("leave model.classes out, or --set model.classes=", found));
  }
  if (job.data.validate == "synthetic") {
    all.validate = synthetic_collection(job.data.samples, job.model.classes);
  } else if (!job.data.validate.empty()) {
    const std::string& main = all.train.main_member;
    all.validate = main.empty() ? scan_folder(job.data.validate, all.train.classes)
                                : scan_members(job.data.validate, main, all.train.classes);
  }
  return all;
}

Fingerprints compute_fingerprints(const Collections& collections) {
  return {collections.train.fingerprint(), collections.validate ? collections.validate->fingerprint() : ""};
}

namespace {

// The weight of each class by name: what the job gives, times its frequency to the minus class_balance, at a mean of 1
// over the samples.
std::vector<std::pair<std::string, double>> weigh_classes(const spec::Training& training, const Collection& train) {
  if (training.class_balance == 0 && training.class_weights.empty()) return {};
  std::vector<int64_t> counts(train.classes.size());
  for (const Sample& sample : train.samples) ++counts[static_cast<size_t>(sample.label)];
  std::vector<std::pair<std::string, double>> weights;
  double sum = 0;
  for (size_t label = 0; label < counts.size(); ++label) {
    const auto count = static_cast<double>(std::max<int64_t>(1, counts[label]));
    double weight = std::pow(count, -training.class_balance);
    for (const auto& [name, given] : training.class_weights) {
      if (name == train.classes[label]) weight *= given;
    }
    sum += weight * static_cast<double>(counts[label]);
    weights.emplace_back(train.classes[label], weight);
  }
  const double scale = static_cast<double>(train.samples.size()) / sum;
  // Those of a resolved job stay as they are to the last bit: it would be refused as another one.
  const bool is_scaled = std::abs(scale - 1) < 1e-12;
  for (auto& [name, weight] : weights) weight *= is_scaled ? 1 : scale;
  for (const auto& [name, given] : training.class_weights) {
    if (std::find(train.classes.begin(), train.classes.end(), name) != train.classes.end()) continue;
    throw Error(Blame::user, text("training.class_weights: there is no class '", name, "'"),
                base::did_you_mean(name, train.classes));
  }
  return weights;
}

}  // namespace

spec::Job resolve(spec::Job job, const Collections& collections) {
  if (task::make_task(job)->classes() == task::Classes::of_samples) {
    job.training.class_weights = weigh_classes(job.training, collections.train);
    job.training.class_balance = 0;  // it stands in the weights now
  }
  job.model.classes = task::make_task(job, collections.train.classes)->num_outputs();
  job.data.order = job.data.balance > 0 ? spec::SampleOrder::full : settle_order(collections.train, job.data.order);
  return job;
}

}  // namespace lockstep::loader
