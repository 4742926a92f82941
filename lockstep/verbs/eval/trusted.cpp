// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/trusted.h"

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/store.h"
#include "lockstep/trust/figures.h"
#include "lockstep/trust/near_duplicates.h"

namespace lockstep::verbs::eval {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr size_t kMostLabelCandidates = 24, kMostLeaked = 24;

trust::ClassRows reported_rows(const trust::ClassRows& rows, const trust::Calibration& calibration,
                               const std::string& samples) {
  if (calibration.samples != samples) return rows;
  std::vector<int64_t> left;
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (trust::use_of(rows.ids[static_cast<size_t>(i)]) == trust::RowUse::report) left.push_back(i);
  }
  return rows.select(left);
}

// The scores of the threshold rows against the training images.
void add_distances(trust::Calibration& calibration, const trust::ClassRows& rows,
                   const trust::TrainingFeatures& training) {
  auto& mahalanobis = calibration.known["mahalanobis"];
  auto& neighbour = calibration.known["neighbour"];
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (trust::use_of(rows.ids[static_cast<size_t>(i)]) != trust::RowUse::thresholds) continue;
    mahalanobis.push_back(training.gaussians.score(rows.feature(i)));
    neighbour.push_back(training.neighbour_score(rows.feature(i)));
  }
  std::sort(mahalanobis.begin(), mahalanobis.end());
  std::sort(neighbour.begin(), neighbour.end());
}

std::optional<trust::Calibration> stored_calibration(const training::Trained& trained,
                                                     std::vector<std::string>& notes) {
  if (trained.trust.empty() || !base::is_there(trust::calibration_file(trained.trust))) return std::nullopt;
  try {
    return trust::read_calibration(trained.trust, results::terms_of(trained.job, trained.weights, trained.classes, 0));
  } catch (const Error& error) {
    if (error.blame() != Blame::user) throw;
    notes.push_back(text("not calibrated: ", error.what()));
    return std::nullopt;
  }
}

// What the images of a collection look like.
struct Looks {
  std::vector<uint64_t> hashes;
  std::vector<std::string> contents;  // SHA-256 of the files
  std::vector<std::string> names;

  Looks(const loader::Collection& collection, const std::vector<int64_t>& ids) {
    const auto store = loader::open_store(collection);
    std::vector<std::byte> memory;
    for (const int64_t id : ids) {
      const auto file = store->split(id, store->read(id, memory))[0];
      hashes.push_back(trust::perceptual_hash(image::decode_image(file)));
      contents.push_back(base::sha256_hex(file));
      names.push_back(store->name(id));
    }
  }
};

std::vector<int64_t> all_ids(const loader::Collection& collection) {
  std::vector<int64_t> ids(collection.samples.size());
  std::iota(ids.begin(), ids.end(), int64_t{0});
  return ids;
}

double top1_of(const trust::ClassRows& rows) {
  const auto all = trust::answers(rows);
  const auto right = std::count_if(all.begin(), all.end(), [](const trust::Answer& answer) { return answer.right; });
  return static_cast<double>(right) / static_cast<double>(std::max<size_t>(1, all.size()));
}

std::string leakage_words(const Json& leakage) {
  const int64_t exact = leakage.at("exact").as_int(), near = leakage.at("near").as_int();
  if (exact + near == 0) {
    return text("\nnone of ", leakage.at("samples").as_int(), " images is among the training images\n");
  }
  std::string words = text("\n", exact + near, " of ", leakage.at("samples").as_int(),
                           " images are among the training images: ", exact, " the same file, ", near,
                           " nearly the same picture; top-1 ", base::percent(leakage.at("top1").as_double(), 2));
  if (!leakage.at("top1_without").is_null())
    words += text(", without them ", base::percent(leakage.at("top1_without").as_double(), 2));
  for (const auto& row : leakage.at("shown").items()) {
    words += text("\n  ", row.string_or("name", ""), "  ", row.at("training").as_string(), "  ",
                  row.at("bits").as_int(), " of 64 bits differ");
  }
  return words + "\n";
}

std::string rows_words(const trust::Calibration& calibration, int64_t reported, bool same) {
  return text("temperature from ", calibration.fitted_rows, " images, thresholds from ", calibration.threshold_rows(),
              " others of ", calibration.data, same ? text("; these figures from the ", reported, " left") : "");
}

}  // namespace

void check_request(const TrustRequest& request, const training::Trained& trained, const std::string& part) {
  if (!request.any()) return;
  if (trained.job.task != spec::Task::classify) {
    throw Error(Blame::user,
                text("--calibrate, --features, --leakage, --explain and --by are for task classify; this run's is ",
                     name_of(trained.job.task)),
                "leave them out: its own figures need none of them");
  }
  if (request.features && !request.calibrate) {
    throw Error(Blame::user, "--features goes with a calibration", "add --calibrate");
  }
  if (request.leakage && part == "train") {
    throw Error(Blame::user, "--leakage looks for images among the training images, and these are those",
                "--data validate, or --data FOLDER");
  }
  if (!request.calibrate) return;
  if (trained.run.empty()) {
    throw Error(Blame::user, "--calibrate keeps what it finds in a run folder",
                "give the run folder; a version of a store gets it from there: lockstep store add");
  }
  if (part == "train") {
    throw Error(Blame::user, "these images were trained on: the network is too sure of them",
                "calibrate on others: --data validate, or --data FOLDER");
  }
}

void keep_rows(const task::Rows& batch, trust::ClassRows& rows, int64_t step) {
  const task::OutputValues& logits = batch.output("logits");
  const int64_t* labels = batch.field("label").values<int64_t>();
  const auto features = std::find_if(batch.outputs.begin(), batch.outputs.end(),
                                     [](const task::OutputValues& output) { return output.name == "features"; });
  for (int64_t i = 0; i < batch.size(); ++i) {
    if (batch.sample_ids[static_cast<size_t>(i)] % step != 0) continue;
    rows.add(logits.row(i), labels[i], batch.sample_ids[static_cast<size_t>(i)],
             features == batch.outputs.end() ? std::span<const float>() : features->row(i));
  }
}

void gather_rows(trust::ClassRows& rows, comm::Group& group) {
  if (group.size() > 1) {
    const auto all = comm::gather_texts(group, rows.pack());
    rows = {};
    for (const auto& packed : all) rows.merge(packed);
  }
  rows.sort();
}

std::vector<std::string> column_values(const loader::Collection& collection, const std::vector<int64_t>& ids,
                                       const std::string& column) {
  const auto store = loader::open_store(collection, {"json"});
  std::vector<std::byte> memory;
  std::vector<std::string> values;
  values.reserve(ids.size());
  for (const int64_t id : ids) {
    const auto member = store->split(id, store->read(id, memory))[1];
    const Json document = base::parse_json({reinterpret_cast<const char*>(member.data()), member.size()},
                                           text(store->name(id), " (json)"));
    const Json* value = document.find(column);
    if (!value) {
      std::vector<std::string> columns;
      columns.reserve(document.size());
      for (const auto& known : document.members()) columns.push_back(known.key);
      throw Error(Blame::user, text("--by ", column, ": ", store->name(id), " has no such column"),
                  base::did_you_mean(column, columns));
    }
    values.push_back(value->is_string() ? value->as_string() : value->dump(-1));
  }
  return values;
}

Json find_leakage(const trust::ClassRows& rows, const loader::Collection& evaluated,
                  const loader::Collection& training) {
  const Looks own(evaluated, rows.ids);
  const Looks theirs(training, all_ids(training));
  std::vector<int64_t> clean;
  Json result = Json::object();
  Json shown = Json::array();
  int64_t exact = 0, near = 0;
  const auto pairs = trust::near_pairs(own.hashes, theirs.hashes);
  auto next = pairs.begin();
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (next == pairs.end() || next->a != i) {
      clean.push_back(i);
      continue;
    }
    const auto at = static_cast<size_t>(next->b);
    const bool same = own.contents[static_cast<size_t>(i)] == theirs.contents[at];
    ++(same ? exact : near);
    if (shown.size() < kMostLeaked) {
      Json row = Json::object();
      row["sample"] = rows.ids[static_cast<size_t>(i)];
      row["training"] = theirs.names[at];
      row["bits"] = same ? 0 : next->bits;
      row["same_file"] = same;
      shown.push_back(std::move(row));
    }
    ++next;
  }
  result["samples"] = rows.size();
  result["exact"] = exact;
  result["near"] = near;
  result["top1"] = top1_of(rows);
  result["top1_without"] = clean.empty() ? Json() : Json(top1_of(rows.select(clean)));
  result["shown"] = std::move(shown);
  return result;
}

TrustResult find_trust(const trust::ClassRows& rows, const training::Trained& trained,
                       const loader::Collection& collection, const TrustRequest& request,
                       const std::optional<trust::TrainingFeatures>& training) {
  TrustResult result;
  if (rows.size() == 0) return result;
  const std::string samples = collection.is_synthetic() ? "" : collection.fingerprint();
  std::optional<trust::Calibration> calibration;
  if (request.calibrate) {
    calibration = trust::calibrate(rows);
    calibration->terms = results::terms_of(trained.job, trained.weights, trained.classes, 0);
    calibration->which = trained.which;
    calibration->data = collection.root;
    calibration->samples = samples;
    if (training) add_distances(*calibration, rows, *training);
    result.calibration = calibration;
  } else {
    calibration = stored_calibration(trained, result.notes);
  }
  const trust::ClassRows reported = calibration ? reported_rows(rows, *calibration, samples) : rows;
  if (reported.size() == 0) return result;
  result.figures = trust::trust_figures(reported, calibration);
  if (calibration) {
    result.figures["calibration"] = rows_words(*calibration, reported.size(), calibration->samples == samples);
  }
  const double temperature = calibration ? calibration->temperature : 1;
  const spec::Data& data = trained.job.data;
  const bool trained_on = collection.root == data.train && collection.root != data.validate;
  result.figures["labels"] =
      trust::label_figures(trained_on ? trust::ClassRows() : rows, temperature, trained.classes, kMostLabelCandidates);
  if (trained_on) {
    result.notes.emplace_back(
        "these images were trained on: the figures flatter the network, and wrong labels were not looked for");
  }
  if (!request.by.empty()) {
    result.figures["by"] = request.by;
    result.figures["groups"] = trust::group_figures(rows, column_values(collection, rows.ids, request.by));
  }
  return result;
}

std::string trust_words(const Json& figures) {
  if (figures.is_null()) return "";
  std::string words = trust::trust_text(figures);
  if (const Json* calibration = figures.find("calibration")) words += text("  ", calibration->as_string(), "\n");
  if (const int64_t found = figures.at("labels").at("found").as_int(); found > 0) {
    const Json& first = figures.at("labels").at("shown").items().front();
    words += text("\n", found, " labels may be wrong (confident learning)",
                  first.contains("name") ? text(", first ", first.at("name").as_string()) : "", ": is ",
                  first.at("given").as_string(), ", looks like ", first.at("suggested").as_string(),
                  "; `lockstep report` shows them\n");
  }
  if (const Json* leakage = figures.find("leakage")) words += leakage_words(*leakage);
  if (const Json* groups = figures.find("groups")) words += trust::groups_text(*groups, figures.at("by").as_string());
  return words;
}

}  // namespace lockstep::verbs::eval
