// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/insight/heat_map.h"
#include "lockstep/results/terms.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/source_sentences.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/step.h"
#include "lockstep/task/objects.h"
#include "lockstep/trust/heat_overlay.h"

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

// The mean of what several networks say, each at its own temperature.
class MeanAnswers {
 public:
  MeanAnswers(const task::OutputValues& logits, double temperature)
      : width_(logits.width), sums_(logits.values.size()) {
    add(logits, temperature);
  }

  void add(const task::OutputValues& logits, double temperature) {
    const auto rows = static_cast<int64_t>(sums_.size()) / width_;
    entropies_.resize(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      const auto shares = trust::softmax(logits.row(i), temperature);
      for (size_t k = 0; k < shares.size(); ++k) sums_[static_cast<size_t>(i * width_) + k] += shares[k];
      entropies_[static_cast<size_t>(i)] += entropy(shares, 1);
    }
    ++networks_;
  }

  std::vector<float> shares() const {
    std::vector<float> mean;
    mean.reserve(sums_.size());
    for (const double sum : sums_) mean.push_back(static_cast<float>(sum / networks_));
    return mean;
  }

  // Between the networks: the entropy of the mean less the mean of their entropies, in nats; 0: they agree.
  double disagreement(int64_t i) const {
    const auto row = std::span(sums_).subspan(static_cast<size_t>(i * width_), static_cast<size_t>(width_));
    return std::max(0.0, entropy(row, networks_) - entropies_[static_cast<size_t>(i)] / networks_);
  }

 private:
  static double entropy(std::span<const double> sums, double count) {
    double sum = 0;
    for (const double each : sums) {
      if (const double share = each / count; share > 0) sum -= share * std::log(share);
    }
    return sum;
  }

  int64_t width_;
  std::vector<double> sums_;  // [rows, classes]
  std::vector<double> entropies_;
  double networks_ = 0;
};

double calibrated_temperature(const training::Trained& trained) {
  const auto found = trust::read_calibration(trained.trust);
  if (!found) return 1;
  const auto terms = results::terms_of(trained.job, trained.weights, trained.classes, 0);
  return results::difference(found->terms, terms).empty() ? found->temperature : 1;
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

std::optional<loader::Collection> plain_images(const std::vector<std::string>& paths) {
  const bool may_be_others = std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    return sources::is_sentence_list(path) || loader::is_shard_folder(path);
  });
  return may_be_others ? std::nullopt : std::optional(image_collection(paths));
}

loader::Collection collection_for(const training::Trained& trained, const std::vector<std::string>& paths,
                                  std::optional<loader::Collection> listed) {
  const std::string main = trained.task->main_member();
  if (main.empty()) return listed ? std::move(*listed) : image_collection(paths);
  std::vector<std::string> places, sentences;
  for (const auto& path : paths) {
    if (std::filesystem::is_directory(path)) {
      if (paths.size() == 1) return loader::scan_images(path, main);
      throw Error(Blame::user, text(path, ": a folder of shards stands alone"), "give it without other lists");
    }
    for (auto& sentence : sources::list_sentences(path)) {
      places.push_back(std::move(sentence.place));
      sentences.push_back(std::move(sentence.text));
    }
  }
  return loader::sentence_collection(std::move(places), std::move(sentences));
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

std::vector<training::Trained> load_ensemble(const std::vector<std::string>& runs, const training::Trained& first,
                                             at::Device device) {
  std::vector<training::Trained> all;
  all.reserve(runs.size());
  for (const auto& word : runs) {
    const size_t at = base::is_there(word) ? std::string::npos : word.rfind('@');
    const std::string which = at == std::string::npos ? "" : word.substr(at + 1);
    all.push_back(training::load_trained({word.substr(0, at), "", {}, device, which}));
    const training::Trained& other = all.back();
    const auto way = [](const spec::Data& data) {
      return std::tuple(data.image_size, data.center_crop, data.mean, data.std, data.pixels);
    };
    if (other.job.task != first.job.task || other.classes != first.classes) {
      throw Error(Blame::user, text("--ensemble ", word, ": it has other classes"), "runs of the same classes alone");
    }
    if (way(other.job.data) != way(first.job.data) || other.job.training.precision != first.job.training.precision) {
      throw Error(Blame::user, text("--ensemble ", word, ": its images are prepared in another way"),
                  "runs of the same data.image_size, center_crop, mean, std and pixels, and training.precision");
    }
  }
  return all;
}

std::unique_ptr<const sources::ImageColumns> columns_for(const base::Arguments& arguments,
                                                         const training::Trained& trained,
                                                         const loader::Collection& collection,
                                                         const std::function<void(const std::string&)>& say) {
  const std::vector<std::string> used = trained.task->known_columns();
  const std::string& context = trained.job.instances.context;
  const auto list = arguments.value("--columns");
  if (!list) {
    if (!used.empty())
      say(text("note: ", context, " weighs by ", base::join(used, ", "),
               ", which is known of no image: --columns LIST"));
    return nullptr;
  }
  if (used.empty()) {
    throw Error(Blame::user, text("--columns ", *list, ": this run weighs no class by a column"),
                "name a table with lines class,COLUMN=VALUE,weight: --set instances.context=TABLE.csv "
                "(docs/detection.md), or leave --columns out");
  }
  std::vector<std::string> names;
  names.reserve(collection.samples.size());
  for (int64_t id = 0; id < std::ssize(collection.samples); ++id) names.push_back(collection.name_of(id));
  auto columns = std::make_unique<const sources::ImageColumns>(*list, names);
  columns->require(used, context);
  if (columns->num_unlisted() > 0) {
    say(text("note: ", columns->num_unlisted(), " of ", names.size(), " images do not stand in ", *list, ", such as ",
             columns->first_unlisted(), ": no column weighs their scores"));
  }
  return columns;
}

BatchPredictor::BatchPredictor(const training::Trained& trained, const loader::Collection& collection,
                               const PredictOptions& options)
    : trained_(trained), collection_(collection), options_(options), inference_(trained, options.device) {
  if (!options.ensemble) return;
  ensemble_.reserve(options.ensemble->size());
  temperatures_.reserve(options.ensemble->size());
  for (const auto& other : *options.ensemble) {
    ensemble_.push_back(std::make_unique<training::Inference>(other, options.device));
    temperatures_.push_back(calibrated_temperature(other));
  }
}

std::vector<std::string> BatchPredictor::annotations_of(const loader::Batch& batch) const {
  std::vector<std::string> all = batch.annotations;
  for (size_t i = 0; options_.columns && i < all.size(); ++i) {
    Json known = options_.columns->of(batch.sample_ids[i]);
    if (!known.is_null() && !all[i].empty()) all[i] = task::annotation_with_columns(all[i], std::move(known));
  }
  return all;
}

std::vector<Json> BatchPredictor::records(const loader::Batch& batch, const model::NamedTensors& fields) const {
  std::vector<Json> all;
  const auto was_read = [&](int64_t i) { return batch.was_read[static_cast<size_t>(i)] != 0; };
  const auto add_all = [&](const task::Rows& rows) {
    for (int64_t i = 0; i < rows.size(); ++i) {
      all.push_back(was_read(i) ? trained_.task->record(rows, i, options_.top) : Json());
    }
  };
  const TrustedAnswers* trusted = options_.trusted;
  if (!trusted || !trusted->is_active()) {
    const auto host = inference_.outputs(fields);
    task::Rows rows = step::plain_rows(batch, host);
    const std::vector<std::string> annotations = annotations_of(batch);
    rows.annotations = annotations;
    add_all(rows);
    return all;
  }
  at::Tensor features;
  const auto scored =
      trained_.objective->scored(inference_.evaluated(fields, trusted->needs_features() ? &features : nullptr));
  const task::Rows rows = step::plain_rows(batch, scored);
  const task::OutputValues& logits = rows.output("logits");
  const at::Tensor seen = features.defined() ? objective::host_rows(features) : at::Tensor();
  MeanAnswers mean(logits, trusted->temperature());
  for (size_t i = 0; i < ensemble_.size(); ++i) {
    const auto their = (*options_.ensemble)[i].objective->scored(ensemble_[i]->evaluated(fields));
    mean.add(step::plain_rows(batch, their).output("logits"), temperatures_[i]);
  }
  const std::vector<float> shares = mean.shares();
  add_all({rows.sample_ids, rows.fields, {{"probabilities", logits.width, shares}}, rows.annotations});
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (!was_read(i)) continue;
    Json& record = all[static_cast<size_t>(i)];
    std::span<const float> feature;
    if (seen.defined()) {
      feature = {seen.const_data_ptr<float>() + i * seen.size(1), static_cast<size_t>(seen.size(1))};
    }
    if (options_.ensemble) record["disagreement"] = mean.disagreement(i);
    trusted->add(record, logits.row(i), feature);
  }
  return all;
}

void BatchPredictor::explain(const loader::Batch& batch, const model::NamedTensors& fields,
                             const std::vector<Json>& records) {
  const TrustOptions& options = options_.trusted->options();
  const step::PassPrecision scope(trained_.network, trained_.job.training.precision, options_.device, 0);
  const at::Tensor images = fields.at("image").to(step::compute_type(trained_.job.training.precision));
  std::vector<int64_t> said;
  said.reserve(records.size());
  for (const auto& record : records) {
    if (record.is_null()) {
      said.push_back(0);
      continue;
    }
    const std::string& name = record.at("classes").items().front().at("name").as_string();
    said.push_back(std::find(trained_.classes.begin(), trained_.classes.end(), name) - trained_.classes.begin());
  }
  const auto method = options.heat.empty() ? insight::fitting_method(trained_.network, images)
                                           : insight::heat_method_named(options.heat);
  const at::Tensor maps = insight::heat_maps(trained_.network, images, said, method);
  for (int64_t i = 0; i < batch.size(); ++i) {
    if (batch.was_read[static_cast<size_t>(i)] == 0) continue;
    const at::Tensor map = maps[i].contiguous();
    const image::Image over = trust::heat_overlay(insight::shown_view(images[i], trained_.job.data),
                                                  {map.const_data_ptr<float>(), static_cast<size_t>(map.numel())});
    const base::Path to =
        options.explain /
        results::picture_name(collection_.name_of(batch.sample_ids[static_cast<size_t>(i)]), collection_.root);
    base::make_folders(to.parent_path());
    base::write_file(to, image::encode_jpeg(over, 90));
  }
}

std::vector<Prediction> BatchPredictor::predict(const loader::Batch& batch, const loader::Loader& from) {
  const auto samples = step::to_samples(batch, options_.device);
  std::vector<Json> found = records(batch, samples.fields);
  if (options_.trusted && !options_.trusted->options().explain.empty()) explain(batch, samples.fields, found);
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
      prediction.record = std::move(found[static_cast<size_t>(i)]);
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
  BatchPredictor predictor(trained, collection, options);
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

std::string predict_csv(const std::vector<Prediction>& predictions, const task::Task& task, int64_t top,
                        const std::vector<std::string>& members) {
  std::vector<std::string> columns = task.columns(top);
  columns.insert(columns.end(), members.begin(), members.end());
  const size_t width = columns.size();
  columns.insert(columns.begin(), "file");
  columns.emplace_back("error");
  std::string out = csv_row(columns);
  for (const auto& prediction : predictions) {
    std::vector<std::string> cells =
        prediction.failed() ? std::vector<std::string>(width) : task.cells(prediction.record, top);
    if (!prediction.failed()) {
      for (const auto& member : members) cells.push_back(member_cell(prediction.record, member));
    }
    base::ensure(cells.size() == width, "a cell for each column");
    cells.insert(cells.begin(), looks_like_formula(prediction.path) ? "./" + prediction.path : prediction.path);
    cells.push_back(prediction.error);
    out += csv_row(cells);
  }
  return out;
}

std::string predict_line(const Prediction& prediction, const training::Trained& trained) {
  if (prediction.failed()) return text(prediction.path, ": ", prediction.error);
  return text(prediction.path, "  ", trained.task->line(prediction.record), trust_words(prediction.record));
}

}  // namespace lockstep::verbs::predict
