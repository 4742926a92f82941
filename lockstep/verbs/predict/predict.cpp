// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/predict.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/step.h"

namespace lockstep::verbs::predict {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr int64_t kBatch = 16;

// Every rank's predictions, in rank order.
std::vector<Prediction> predictions_of_all(const std::vector<Prediction>& mine, comm::Group& group) {
  Json rows = Json::array();
  for (const auto& prediction : mine) {
    rows.push_back(Json::array({Json(prediction.path), prediction.record, Json(prediction.error)}));
  }
  std::vector<Prediction> all;
  for (const auto& words : comm::gather_texts(group, rows.dump(-1))) {
    const Json theirs = base::parse_json(words, "predictions of a rank", {.max_bytes = size_t{1} << 30});
    for (const auto& row : theirs.items()) {
      all.push_back({row.items()[0].as_string(), row.items()[1], row.items()[2].as_string()});
    }
  }
  return all;
}

bool looks_like_formula(const std::string& cell) {
  return !cell.empty() && std::string_view("=+-@\t\r").find(cell.front()) != std::string_view::npos;
}

// A number may begin with a minus, no other word may.
std::string csv_cell(const std::string& cell) {
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  const bool is_number = !cell.empty() && *end == '\0' && end == cell.c_str() + cell.size();
  std::string safe = looks_like_formula(cell) && !is_number ? "'" + cell : cell;
  if (safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::vector<std::string> words;
  words.reserve(cells.size());
  for (const auto& cell : cells) words.push_back(csv_cell(cell));
  return base::join(words, ",") + "\r\n";
}

}  // namespace

std::vector<std::string> images_of(const std::vector<std::string>& paths) {
  std::vector<std::string> images;
  for (const auto& path : paths) {
    if (std::filesystem::is_directory(path)) {
      for (auto& sample : loader::scan_images(path).samples) images.push_back(std::move(sample.path));
    } else if (std::filesystem::exists(path)) {
      images.push_back(path);
    } else {
      throw Error(Blame::user, text(path, ": there is no such image or folder"), "check the path");
    }
  }
  return images;
}

loader::Collection image_collection(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && loader::is_shard_folder(paths.front())) return loader::scan_images(paths.front());
  loader::Collection collection{.root = ""};
  for (const auto& path : images_of(paths)) collection.samples.push_back({path, 0});
  return collection;
}

std::vector<Prediction> predict_images(const training::Trained& trained, const std::vector<std::string>& images,
                                       const PredictOptions& options) {
  loader::Collection collection{.root = ""};
  for (const auto& path : images) collection.samples.push_back({path, 0});
  const auto alone = comm::single_group();
  return predict_collection(trained, collection, options, *alone);
}

int64_t prediction_batch(const spec::Job& job) {
  return job.evaluation.batch > 0 ? job.evaluation.batch : kBatch;
}

std::unique_ptr<loader::Loader> prediction_loader(const training::Trained& trained,
                                                  const loader::Collection& collection, run::LoaderState from,
                                                  int64_t batches) {
  const spec::Job& job = trained.job;
  loader::LoaderOptions options;
  options.data = job.data;
  options.task = trained.task;
  options.data.on_bad_sample = spec::OnBadSample::skip;
  options.use = loader::Use::predict;
  options.global_batch = prediction_batch(job);
  options.threads = job.data.threads > 0 ? job.data.threads : site::cores_per_rank();
  options.batches = batches;
  return loader::make_loader(collection, options, from);
}

BatchPredictor::BatchPredictor(const training::Trained& trained, const loader::Collection& collection, int64_t top,
                               at::Device device)
    : trained_(trained),
      collection_(collection),
      top_(top),
      device_(device),
      scope_(trained.network, trained.job.training.precision, device) {}

std::vector<Prediction> BatchPredictor::predict(const loader::Batch& batch, const loader::Loader& from) {
  const auto samples = step::to_samples(batch, device_);
  const auto host = trained_.objective->predicted(
      step::evaluate_pass(trained_.network, samples.fields, *trained_.objective,
                          {trained_.job.training.precision, trained_.job.evaluation.views}));
  const task::Rows rows = step::plain_rows(batch, host);
  std::map<int64_t, std::string> reasons;
  if (std::count(batch.was_read.begin(), batch.was_read.end(), 0) > 0) {
    for (const auto& bad : from.bad_samples()) reasons[bad.id] = bad.reason;
  }
  std::vector<Prediction> predictions;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t id = batch.sample_ids[static_cast<size_t>(i)];
    Prediction prediction{collection_.name_of(id), {}, ""};
    if (batch.was_read[static_cast<size_t>(i)] == 0) {
      prediction.error = reasons[id];
    } else {
      prediction.record = trained_.task->record(rows, i, top_);
    }
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

std::vector<Prediction> predict_collection(const training::Trained& trained, const loader::Collection& collection,
                                           const PredictOptions& options, comm::Group& group) {
  const auto share = run::evaluation_share(static_cast<int64_t>(collection.samples.size()),
                                           prediction_batch(trained.job), group.rank(), group.size());
  const auto loader = prediction_loader(trained, collection, share.from, share.batches);
  const bool at_once = options.each && group.size() == 1;
  BatchPredictor predictor(trained, collection, options.top, options.device);
  std::vector<Prediction> predictions;
  for (int64_t done = 0; done < share.batches; ++done) {
    for (auto& prediction : predictor.predict(loader->next(), *loader)) {
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

Json predict_json(const std::vector<Prediction>& predictions) {
  Json images = Json::array();
  int64_t failed = 0;
  for (const auto& prediction : predictions) {
    Json row = Json::object();
    row["path"] = prediction.path;
    if (prediction.failed()) {
      row["error"] = prediction.error;
      ++failed;
    } else {
      for (const auto& member : prediction.record.members()) row[member.key] = member.value;
    }
    images.push_back(std::move(row));
  }
  Json all = Json::object();
  all["images"] = std::move(images);
  all["failed"] = failed;
  return all;
}

TableFormat table_format(const base::Path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".csv") return TableFormat::csv;
  if (extension == ".jsonl") return TableFormat::jsonl;
  throw Error(Blame::user, text("--to ", file.string(), ": of which kind is it to be?"), "name it .csv or .jsonl");
}

std::string predict_csv(const std::vector<Prediction>& predictions, const task::Task& task, int64_t top) {
  std::vector<std::string> columns = task.columns(top);
  const size_t width = columns.size();
  columns.insert(columns.begin(), "file");
  columns.emplace_back("error");
  std::string out = csv_row(columns);
  for (const auto& prediction : predictions) {
    std::vector<std::string> cells =
        prediction.failed() ? std::vector<std::string>(width) : task.cells(prediction.record, top);
    base::ensure(cells.size() == width, "a cell for each column");
    cells.insert(cells.begin(), looks_like_formula(prediction.path) ? "./" + prediction.path : prediction.path);
    cells.push_back(prediction.error);
    out += csv_row(cells);
  }
  return out;
}

std::string predict_line(const Prediction& prediction, const training::Trained& trained) {
  if (prediction.failed()) return text(prediction.path, ": ", prediction.error);
  return text(prediction.path, "  ", trained.task->line(prediction.record));
}

}  // namespace lockstep::verbs::predict
