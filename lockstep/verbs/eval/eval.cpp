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
#include "lockstep/insight/heat_map.h"
#include "lockstep/insight/sample_image.h"
#include "lockstep/loader/store.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/run/folder.h"
#include "lockstep/shards/original_names.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/trust/heat_overlay.h"

namespace lockstep::verbs::eval {
namespace {

using base::Blame;
using base::Error;
using base::fixed;
using base::Json;
using base::Path;
using base::text;

constexpr int64_t kThumbnailPixels = 160;  // of the longer side: about 6 kB as a JPEG
constexpr int64_t kDrawnPixels = 320;      // where boxes are drawn on it

std::string folder_of(const std::string& data, const spec::Job& job) {
  std::string folder = data == "validate" ? job.data.validate
                       : data == "test"   ? job.data.test
                       : data == "train"  ? job.data.train
                                          : data;
  if (!folder.empty()) return folder;
  if (base::is_there(data)) return data;  // somebody's own folder is called "test"
  throw Error(Blame::user, text("the job has no data.", data), "add --data FOLDER");
}

loader::Collection open_collection(const std::string& folder, const training::Trained& trained) {
  if (folder == "synthetic") return loader::synthetic_collection(trained.job.data.samples, trained.job.model.classes);
  if (const std::string main = trained.task->main_member(); !main.empty())
    return loader::scan_members(folder, main, trained.classes);
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

image::Image thumbnail(const image::Image& image, int64_t pixels) {
  const double scale =
      std::min(1.0, static_cast<double>(pixels) / static_cast<double>(std::max(image.width, image.height)));
  const auto size = [&](int64_t side) { return std::max<int64_t>(1, std::llround(scale * static_cast<double>(side))); };
  return image::resize_image(image, size(image.width), size(image.height));
}

std::string picture_name(const char* kind, size_t rank) {
  char name[32];
  std::snprintf(name, sizeof name, "%s-%02zu.jpg", kind, rank);
  return name;
}

step::EvaluateOptions way_of(const training::Trained& trained, const EvalOptions& options) {
  step::EvaluateOptions how;
  how.task = trained.task;
  how.objective = trained.objective;
  how.worst = trained.job.evaluation.worst;
  how.precision = trained.job.training.precision;
  how.views = trained.job.evaluation.views;
  how.device = options.device;
  return how;
}

// Every sample of the collection once, over the ranks.
class Pass {
 public:
  Pass(const loader::Collection& collection, const training::Trained& trained, comm::Group& group)
      : trained_(trained), group_(group), count_(static_cast<int64_t>(collection.samples.size())) {
    const auto share = run::evaluation_share(count_, run::evaluation_batch(trained.job), group.rank(), group.size());
    loader_ = loader_of(collection, trained, share);
    own_ = std::min(count_, share.batches * run::evaluation_batch(trained.job));
  }

  std::unique_ptr<task::Score> run(const EvalOptions& options, step::EvaluateOptions how) {
    if (options.seen) how.seen = [&](int64_t samples) { options.seen(samples, own_); };
    return step::evaluate(trained_.network, *loader_, group_, how);
  }
  std::vector<loader::BadSample> bad_samples() const { return step::over_ranks(loader_->bad_samples(), group_); }
  std::vector<loader::BadSample> left_out() const { return step::over_ranks(loader_->left_out(), group_); }

 private:
  const training::Trained& trained_;
  comm::Group& group_;
  int64_t count_;
  int64_t own_ = 0;
  std::unique_ptr<loader::Loader> loader_;
};

std::vector<ShownSample> shown_samples(const std::vector<int64_t>& ids, const loader::Collection& collection) {
  const auto store = collection.is_synthetic() ? nullptr : loader::open_store(collection);
  const std::vector<std::string> names = names_of(ids, collection);
  std::vector<std::byte> memory;
  std::vector<ShownSample> shown;
  shown.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool has_picture = store && collection.main_member.empty();
    const auto file = has_picture ? store->read(ids[i], memory) : std::span<const std::byte>();
    shown.push_back(
        {store ? store->name(ids[i]) : "", names[i], {reinterpret_cast<const char*>(file.data()), file.size()}});
  }
  return shown;
}

std::vector<int64_t> ids_in(const Json& list) {
  std::vector<int64_t> ids;
  ids.reserve(list.size());
  for (const auto& row : list.items()) ids.push_back(row.at("sample").as_int());
  return ids;
}

void add_names(Json& list, const std::vector<ShownSample>& samples) {
  Json named = Json::array();
  for (size_t i = 0; i < samples.size(); ++i) {
    Json row = list.items()[i];
    row["path"] = samples[i].path;
    row["name"] = samples[i].name;
    named.push_back(std::move(row));
  }
  list = std::move(named);
}

// What the head takes of the training images, evenly spread where they are many.
std::optional<trust::TrainingFeatures> training_features(const training::Trained& trained, const EvalOptions& options,
                                                         comm::Group& group) {
  if (!options.trust.features) return std::nullopt;
  const loader::Collection collection = open_collection(folder_of("train", trained.job), trained);
  const auto count = static_cast<int64_t>(collection.samples.size());
  const int64_t step = (count + trust::kMostFeatureRows - 1) / trust::kMostFeatureRows;
  trust::ClassRows rows;
  step::EvaluateOptions how = way_of(trained, options);
  how.features = true;
  how.rows = [&](const task::Rows& batch) { keep_rows(batch, rows, step); };
  Pass(collection, trained, group).run(options, how);
  gather_rows(rows, group);
  return trust::make_training_features(rows, names_of(rows.ids, collection), base::sha256_of_file(trained.weights));
}

std::vector<image::Image> heat_of(const std::vector<std::string>& files, const Json& worst,
                                  const training::Trained& trained, at::Device device) {
  std::vector<image::Image> heat;
  heat.reserve(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].empty()) return {};  // synthetic samples have no file
    const auto bytes = std::as_bytes(std::span(files[i].data(), files[i].size()));
    const at::Tensor image = insight::sample_image(*trained.task, trained.job.data, bytes, device);
    const auto said =
        std::find(trained.classes.begin(), trained.classes.end(), worst.items()[i].at("predicted").as_string());
    const at::Tensor map = insight::heat_maps(trained.network, image, {said - trained.classes.begin()},
                                              insight::fitting_method(trained.network, image));
    heat.push_back(trust::heat_overlay(insight::shown_view(image[0], trained.job.data),
                                       {map.const_data_ptr<float>(), static_cast<size_t>(map.numel())}, 1));
  }
  return heat;
}

// The pictures of one list of eval.json, and their names in it.
void save_pictures(Json& list, const char* kind, const std::vector<ShownSample>& samples, const run::RunPaths& paths) {
  Json shown = Json::array();
  for (size_t i = 0; i < samples.size(); ++i) {
    Json row = list.items()[i];
    if (!samples[i].picture.empty()) {
      const std::string& file = samples[i].picture;
      const image::Image image = image::decode_image(std::as_bytes(std::span(file.data(), file.size())));
      base::write_file(paths.pictures() / picture_name(kind, i),
                       image::encode_jpeg(thumbnail(image, kThumbnailPixels), 80));
      row["picture"] = "eval/" + picture_name(kind, i);
    }
    shown.push_back(std::move(row));
  }
  list = std::move(shown);
}

void remove_pictures(const base::Path& folder) {
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    for (const char* kind : {"worst-", "label-", "leaked-", "heat-"}) {
      if (name.starts_with(kind)) {
        std::filesystem::remove(item.path());
        break;
      }
    }
  }
}

}  // namespace

EvalResult evaluate_trained(const training::Trained& trained, const EvalOptions& options, comm::Group& group) {
  const double begin = base::steady_seconds();
  const std::string folder = folder_of(options.data, trained.job);
  const std::string part = part_of(folder, trained.job);
  check_request(options.trust, trained, part);
  const loader::Collection collection = open_collection(folder, trained);
  const bool is_classifier = trained.job.task == spec::Task::classify;
  auto features = training_features(trained, options, group);
  trust::ClassRows rows;
  step::EvaluateOptions how = way_of(trained, options);
  how.features = options.trust.features;
  if (is_classifier) how.rows = [&](const task::Rows& batch) { keep_rows(batch, rows); };
  Pass pass(collection, trained, group);
  EvalResult result{folder, pass.run(options, how), {}, {}, 0};
  result.bad_samples = pass.bad_samples();
  result.left_out = pass.left_out();
  result.part = part;
  for (auto& sample : shown_samples(result.score->worst(), collection)) {
    result.pictures.push_back(std::move(sample.picture));
    result.paths.push_back(std::move(sample.path));
    result.names.push_back(std::move(sample.name));
  }
  if (is_classifier) {
    gather_rows(rows, group);
    TrustResult found = find_trust(rows, trained, collection, options.trust, features);
    result.trust = std::move(found.figures);
    result.calibration = std::move(found.calibration);
    if (result.calibration) result.calibration->part = part;
    result.notes = std::move(found.notes);
    result.features = std::move(features);
    if (Json* labels = result.trust.is_null() ? nullptr : result.trust.find("labels")) {
      result.labels = shown_samples(ids_in(labels->at("shown")), collection);
      add_names((*labels)["shown"], result.labels);
    }
    if (options.trust.leakage && !result.trust.is_null()) {
      const auto training = open_collection(folder_of("train", trained.job), trained);
      result.trust["leakage"] = find_leakage(rows, collection, training);
      result.leaked = shown_samples(ids_in(result.trust.at("leakage").at("shown")), collection);
      add_names(result.trust["leakage"]["shown"], result.leaked);
    }
    if (options.trust.explain && group.rank() == 0) {
      result.heat = heat_of(result.pictures, result.score->to_json().at("worst"), trained, options.device);
    }
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
  if (!result.trust.is_null()) all["trust"] = result.trust;
  const auto list = [&](const char* key, const std::vector<loader::BadSample>& samples) {
    all[key] = Json::array();
    for (const auto& bad : samples) {
      Json row = Json::object();
      row["path"] = bad.path;
      row["reason"] = bad.reason;
      all[key].push_back(std::move(row));
    }
  };
  list("bad_samples", result.bad_samples);
  if (!result.left_out.empty()) list("left_out", result.left_out);
  return all;
}

void save_trust(const EvalResult& result, const training::Trained& trained) {
  if (result.features) trust::write_features(trained.run, *result.features);
  if (result.calibration) trust::write_calibration(trained.run, *result.calibration);
}

void save_evaluation(const EvalResult& result, const training::Trained& trained) {
  const run::RunPaths paths{trained.run};
  base::make_folders(paths.pictures());
  remove_pictures(paths.pictures());
  Json document = eval_json(result, trained);
  Json worst = Json::array();
  for (size_t i = 0; i < result.paths.size(); ++i) {
    Json mistake = document.at("worst").items()[i];
    if (!result.paths[i].empty()) {  // synthetic samples have no file
      const std::string& file = result.pictures[i];
      const image::Image image = image::decode_image(std::as_bytes(std::span(file.data(), file.size())));
      const Json* record = mistake.find("record");
      image::Image shown = thumbnail(image, record ? kDrawnPixels : kThumbnailPixels);
      if (record) trained.task->draw(*record, shown);
      base::write_file(paths.pictures() / picture_name("worst", i), image::encode_jpeg(shown, 80));
      const std::string moving = record ? trained.task->animation(*record) : "";
      mistake["picture"] = "eval/" + picture_name("worst", i);
      if (!moving.empty()) {
        const std::string name = base::Path(picture_name("worst", i)).stem().string() + ".png";
        base::write_file(paths.pictures() / name, moving);
        mistake["animation"] = "eval/" + name;
      }
    }
    if (i < result.heat.size()) {
      const image::Image heat = thumbnail(result.heat[i], kThumbnailPixels);
      base::write_file(paths.pictures() / picture_name("heat", i), image::encode_jpeg(heat, 80));
      mistake["heat"] = "eval/" + picture_name("heat", i);
    }
    worst.push_back(std::move(mistake));
  }
  document["worst"] = std::move(worst);
  if (Json* trust = document.find("trust")) {
    save_pictures((*trust)["labels"]["shown"], "label", result.labels, paths);
    if (Json* leakage = trust->find("leakage")) save_pictures((*leakage)["shown"], "leaked", result.leaked, paths);
  }
  base::write_json(paths.evaluation(), document);
}

std::string eval_text(const EvalResult& result, const training::Trained& trained) {
  const int64_t samples = result.score->samples();
  const double rate = static_cast<double>(samples) / std::max(1e-9, result.seconds);
  std::string out = text(trained.job.model.name, " with ", trained.weights.string(), " on ", samples, " images of ",
                         result.data, " (", base::duration_text(result.seconds), ", ", fixed(rate, 1), " images/s)\n",
                         trained.which.empty() ? "" : text("weights: ", trained.which, "\n"), "\n",
                         result.score->to_text(), trust_words(result.trust));
  if (!result.bad_samples.empty()) out += text("\n", result.bad_samples.size(), " images could not be read:\n");
  for (const auto& bad : result.bad_samples) out += text("  ", bad.path, ": ", bad.reason, "\n");
  if (!result.left_out.empty()) out += text("\nobjects of ", result.left_out.size(), " images were left out:\n");
  for (const auto& bad : result.left_out) out += text("  ", bad.path, ": ", bad.reason, "\n");
  return out;
}

}  // namespace lockstep::verbs::eval
