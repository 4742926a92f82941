// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/predict.h"

#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/loader.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/step.h"

namespace lockstep::verbs::predict {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

constexpr int64_t kBatch = 16;

bool is_image_name(const Path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<std::string> images_below(const Path& folder) {
  std::vector<std::string> images;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (item.is_regular_file() && is_image_name(item.path())) images.push_back(item.path().string());
  }
  if (images.empty()) throw Error(Blame::user, text(folder.string(), ": no .jpg, .jpeg or .png file in this folder"));
  std::sort(images.begin(), images.end());
  return images;
}

std::vector<Guess> best_of(const at::Tensor& probabilities, int64_t top) {
  const float* values = probabilities.const_data_ptr<float>();
  std::vector<Guess> guesses;
  for (int64_t c = 0; c < probabilities.numel(); ++c) guesses.push_back({c, values[c]});
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const Guess& a, const Guess& b) { return a.probability > b.probability; });
  guesses.resize(std::min(guesses.size(), static_cast<size_t>(std::max<int64_t>(1, top))));
  return guesses;
}

loader::LoaderOptions loader_options(const spec::Job& job, int64_t ranks) {
  loader::LoaderOptions options;
  options.data = job.data;
  options.data.on_bad_sample = spec::OnBadSample::skip;
  options.use = loader::Use::evaluate;
  options.global_batch = kBatch;
  options.threads = job.data.threads > 0 ? job.data.threads : std::max<int64_t>(1, site::usable_cores() / ranks);
  return options;
}

// Every rank's predictions, in rank order.
std::vector<Prediction> predictions_of_all(const std::vector<Prediction>& mine, comm::Group& group) {
  Json rows = Json::array();
  for (const auto& prediction : mine) {
    Json guesses = Json::array();
    for (const auto& guess : prediction.guesses) {
      guesses.push_back(Json::array({Json(guess.label), Json(guess.probability)}));
    }
    rows.push_back(Json::array({Json(prediction.path), std::move(guesses), Json(prediction.error)}));
  }
  std::vector<Prediction> all;
  for (const auto& words : comm::gather_texts(group, rows.dump(-1))) {
    const Json theirs = base::parse_json(words, "predictions of a rank", {.max_bytes = size_t{1} << 30});
    for (const auto& row : theirs.items()) {
      Prediction prediction{row.items()[0].as_string(), {}, row.items()[2].as_string()};
      for (const auto& guess : row.items()[1].items()) {
        prediction.guesses.push_back({guess.items()[0].as_int(), guess.items()[1].as_double()});
      }
      all.push_back(std::move(prediction));
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> images_of(const std::vector<std::string>& paths) {
  std::vector<std::string> images;
  for (const auto& path : paths) {
    if (std::filesystem::is_directory(path)) {
      const auto below = images_below(path);
      images.insert(images.end(), below.begin(), below.end());
    } else if (std::filesystem::exists(path)) {
      images.push_back(path);
    } else {
      throw Error(Blame::user, text(path, ": there is no such image or folder"), "check the path");
    }
  }
  return images;
}

loader::Collection pictures_of(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && loader::is_shard_folder(paths.front())) return loader::scan_pictures(paths.front());
  loader::Collection collection{.root = ""};
  for (const auto& path : images_of(paths)) collection.samples.push_back({path, 0});
  return collection;
}

std::vector<Prediction> predict_images(const model::Trained& trained, const std::vector<std::string>& images,
                                       const PredictOptions& options) {
  loader::Collection collection{.root = ""};
  for (const auto& path : images) collection.samples.push_back({path, 0});
  const auto alone = comm::single_group();
  return predict_pictures(trained, collection, options, *alone);
}

std::vector<Prediction> predict_pictures(const model::Trained& trained, const loader::Collection& collection,
                                         const PredictOptions& options, comm::Group& group) {
  const auto share =
      run::evaluation_share(static_cast<int64_t>(collection.samples.size()), kBatch, group.rank(), group.size());
  loader::LoaderOptions reading = loader_options(trained.job, group.size());
  reading.batches = share.batches;
  const auto loader = loader::make_loader(collection, reading, share.from);
  const bool at_once = options.each && group.size() == 1;
  const c10::AutoGradMode no_gradients(false);
  const auto precision = trained.job.training.precision;
  const step::PassPrecision scope(trained.network, precision, options.device);
  std::vector<Prediction> predictions;
  for (int64_t done = 0; done < share.batches; ++done) {
    const loader::Batch batch = loader->next();
    const auto values = step::to_samples(batch, options.device).values.to(step::compute_type(precision));
    const auto logits = trained.network.forward(values, model::Mode::evaluate).logits;
    const auto shares = at::softmax(logits.to(at::kCPU, at::kFloat), 1).contiguous();  // [images, classes]
    std::map<int64_t, std::string> reasons;
    for (const auto& bad : loader->bad_samples()) reasons[bad.id] = bad.reason;
    for (int64_t i = 0; i < batch.size(); ++i) {
      const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
      Prediction prediction{collection.name_of(id), {}, ""};
      if (batch.targets[static_cast<size_t>(i)] == loader::kNoTarget) {
        prediction.error = reasons[id];
      } else {
        prediction.guesses = best_of(shares.select(0, i), options.top);
      }
      if (at_once) options.each(prediction);
      predictions.push_back(std::move(prediction));
    }
    if (options.got_on) options.got_on();
  }
  if (group.size() == 1) return predictions;
  predictions = predictions_of_all(predictions, group);
  if (options.each && group.rank() == 0) {
    for (const auto& prediction : predictions) options.each(prediction);
  }
  return predictions;
}

Json predict_json(const std::vector<Prediction>& predictions, const model::Trained& trained) {
  Json images = Json::array();
  int64_t failed = 0;
  for (const auto& prediction : predictions) {
    Json row = Json::object();
    row["path"] = prediction.path;
    if (prediction.guesses.empty()) {
      row["error"] = prediction.error;
      ++failed;
    } else {
      Json classes = Json::array();
      for (const auto& guess : prediction.guesses) {
        Json entry = Json::object();
        entry["name"] = trained.classes[static_cast<size_t>(guess.label)];
        entry["probability"] = guess.probability;
        classes.push_back(std::move(entry));
      }
      row["classes"] = std::move(classes);
    }
    images.push_back(std::move(row));
  }
  Json all = Json::object();
  all["images"] = std::move(images);
  all["failed"] = failed;
  return all;
}

std::string predict_line(const Prediction& prediction, const model::Trained& trained) {
  if (prediction.guesses.empty()) return text(prediction.path, ": ", prediction.error);
  std::vector<std::string> words;
  for (const auto& guess : prediction.guesses) {
    words.push_back(text(trained.classes[static_cast<size_t>(guess.label)], " ", base::percent(guess.probability)));
  }
  return text(prediction.path, "  ", base::join(words, ", "));
}

}  // namespace lockstep::verbs::predict
