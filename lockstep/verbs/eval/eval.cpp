// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/eval.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/store.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/run/folder.h"
#include "lockstep/shards/original_names.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/evaluate.h"

namespace lockstep::verbs::eval {
namespace {

using base::Blame;
using base::Error;
using base::fixed;
using base::Json;
using base::Path;
using base::text;

constexpr int64_t kThumbnailPixels = 160;  // of the longer side: about 6 kB as a JPEG

std::string folder_of(const std::string& data, const spec::Job& job) {
  std::string folder = data == "validate" ? job.data.validate
                       : data == "test"   ? job.data.test
                       : data == "train"  ? job.data.train
                                          : data;
  if (!folder.empty()) return folder;
  throw Error(Blame::user, text("the job has no data.", data), "add --data FOLDER");
}

loader::Collection open_collection(const std::string& folder, const training::Trained& trained) {
  if (folder == "synthetic") return loader::synthetic_collection(trained.job.data.samples, trained.job.model.classes);
  if (trained.task->classes() == task::Classes::of_samples) return loader::scan_folder(folder, trained.classes);
  return loader::scan_images(folder);
}

std::string part_of(const std::string& folder, const spec::Job& job) {
  return folder == job.data.validate ? "validate"
         : folder == job.data.test   ? "test"
         : folder == job.data.train  ? "train"
                                     : "";
}

// As somebody knows them who has made the collection.
std::vector<std::string> names_of(const std::vector<int64_t>& ids, const loader::Collection& collection) {
  std::vector<std::string> names;
  if (!collection.shards) {
    for (const int64_t id : ids) {
      const std::string& path = collection.samples[static_cast<size_t>(id)].path;
      names.push_back(path.starts_with(collection.root + "/") ? path.substr(collection.root.size() + 1) : path);
    }
    return names;
  }
  std::vector<std::string> keys;
  for (const int64_t id : ids) {
    const auto at = collection.shards->position_of(id);
    keys.emplace_back(collection.shards->index(at.shard).sample(at.sample).key);
  }
  const auto known = shards::read_names(collection.shards->folder(), {keys.begin(), keys.end()});
  for (const auto& key : keys) {
    const auto found = known.find(key);
    names.push_back(found == known.end() ? key : found->second);
  }
  return names;
}

std::unique_ptr<loader::Loader> loader_of(const loader::Collection& collection, const training::Trained& trained,
                                          const run::EvaluationShare& share) {
  const spec::Job& job = trained.job;
  loader::LoaderOptions options;
  options.data = job.data;
  options.task = trained.task;
  options.use = loader::Use::evaluate;
  options.global_batch = run::evaluation_batch(job);
  options.batches = share.batches;
  options.threads = job.data.threads > 0 ? job.data.threads : site::cores_per_rank();
  return loader::make_loader(collection, options, share.from);
}

image::Image thumbnail(const image::Image& image) {
  const double scale =
      std::min(1.0, static_cast<double>(kThumbnailPixels) / static_cast<double>(std::max(image.width, image.height)));
  const auto size = [&](int64_t side) { return std::max<int64_t>(1, std::llround(scale * static_cast<double>(side))); };
  return image::resize_image(image, size(image.width), size(image.height));
}

std::string picture_name(size_t rank) {
  char name[32];
  std::snprintf(name, sizeof name, "worst-%02zu.jpg", rank);
  return name;
}

}  // namespace

EvalResult evaluate_trained(const training::Trained& trained, const EvalOptions& options, comm::Group& group) {
  const double begin = base::steady_seconds();
  const std::string folder = folder_of(options.data, trained.job);
  const loader::Collection collection = open_collection(folder, trained);
  const auto count = static_cast<int64_t>(collection.samples.size());
  const auto share = run::evaluation_share(count, run::evaluation_batch(trained.job), group.rank(), group.size());
  const auto loader = loader_of(collection, trained, share);
  const int64_t all = std::min(count, share.batches * run::evaluation_batch(trained.job));
  step::EvaluateOptions how;
  how.task = trained.task;
  how.objective = trained.objective;
  how.worst = trained.job.evaluation.worst;
  how.precision = trained.job.training.precision;
  how.views = trained.job.evaluation.views;
  how.device = options.device;
  if (options.seen) how.seen = [&](int64_t samples) { options.seen(samples, all); };
  EvalResult result{folder, step::evaluate(trained.network, *loader, group, how), {}, {}, 0};
  result.bad_samples = step::over_ranks(loader->bad_samples(), group);
  const auto store = collection.is_synthetic() ? nullptr : loader::open_store(collection);
  std::vector<std::byte> memory;
  const std::vector<int64_t> worst = result.score->worst();
  result.names = names_of(worst, collection);
  result.part = part_of(folder, trained.job);
  for (const int64_t id : worst) {
    const auto file = store ? store->read(id, memory) : std::span<const std::byte>();
    result.pictures.emplace_back(reinterpret_cast<const char*>(file.data()), file.size());
    result.paths.push_back(store ? store->name(id) : "");
  }
  result.seconds = base::steady_seconds() - begin;
  return result;
}

Json eval_json(const EvalResult& result, const training::Trained& trained) {
  Json all = Json::object();
  all["run"] = trained.run.string();
  all["model"] = trained.job.model.name;
  all["weights"] = trained.weights.string();
  if (!trained.which.empty()) all["which"] = trained.which;
  all["weights_sha256"] = base::sha256_of_file(trained.weights);
  all["data"] = result.data;
  if (!result.part.empty()) all["part"] = result.part;
  all["seconds"] = result.seconds;
  all["task"] = name_of(trained.job.task);
  all["headline"] = to_json(result.score->headline());
  const Json score = result.score->to_json();
  for (const auto& member : score.members()) all[member.key] = member.value;
  Json worst = Json::array();
  for (size_t i = 0; i < result.paths.size(); ++i) {
    Json mistake = score.at("worst").items()[i];
    mistake["path"] = result.paths[i];
    mistake["name"] = result.names[i];
    worst.push_back(std::move(mistake));
  }
  all["worst"] = std::move(worst);
  all["bad_samples"] = Json::array();
  for (const auto& bad : result.bad_samples) {
    Json row = Json::object();
    row["path"] = bad.path;
    row["reason"] = bad.reason;
    all["bad_samples"].push_back(std::move(row));
  }
  return all;
}

void save_evaluation(const EvalResult& result, const training::Trained& trained) {
  const run::RunPaths paths{trained.run};
  base::make_folders(paths.pictures());
  for (const auto& item : std::filesystem::directory_iterator(paths.pictures())) {
    if (item.path().filename().string().starts_with("worst-")) std::filesystem::remove(item.path());
  }
  Json document = eval_json(result, trained);
  Json worst = Json::array();
  for (size_t i = 0; i < result.paths.size(); ++i) {
    Json mistake = document.at("worst").items()[i];
    if (!result.paths[i].empty()) {  // synthetic samples have no file
      const std::string& file = result.pictures[i];
      const image::Image image = image::decode_image(std::as_bytes(std::span(file.data(), file.size())));
      image::Image shown = thumbnail(image);
      if (const Json* record = mistake.find("record")) trained.task->draw(*record, shown);
      base::write_file(paths.pictures() / picture_name(i), image::encode_jpeg(shown, 80));
      mistake["picture"] = "eval/" + picture_name(i);
    }
    worst.push_back(std::move(mistake));
  }
  document["worst"] = std::move(worst);
  base::write_json(paths.evaluation(), document);
}

std::string eval_text(const EvalResult& result, const training::Trained& trained) {
  const int64_t samples = result.score->samples();
  const double rate = static_cast<double>(samples) / std::max(1e-9, result.seconds);
  std::string out =
      text(trained.job.model.name, " with ", trained.weights.string(), " on ", samples, " images of ", result.data,
           " (", base::duration_text(result.seconds), ", ", fixed(rate, 1), " images/s)\n",
           trained.which.empty() ? "" : text("weights: ", trained.which, "\n"), "\n", result.score->to_text());
  if (!result.bad_samples.empty()) out += text("\n", result.bad_samples.size(), " images could not be read:\n");
  for (const auto& bad : result.bad_samples) out += text("  ", bad.path, ": ", bad.reason, "\n");
  return out;
}

}  // namespace lockstep::verbs::eval
