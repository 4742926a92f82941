// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/trusted.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/insight/heat_map.h"
#include "lockstep/trust/outliers.h"

namespace lockstep::verbs::predict {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

std::optional<double> share_option(const base::Arguments& arguments, const char* option) {
  const auto word = arguments.value(option);
  return word ? std::optional(trust::share_from(*word, option)) : std::nullopt;
}

void refuse_task(const TrustOptions& options, const training::Trained& trained) {
  const bool asked = options.coverage || options.abstain || options.unusual || options.nearest > 0 ||
                     !options.explain.empty() || !options.ensemble.empty();
  if (!asked || trained.job.task == spec::Task::classify) return;
  throw Error(Blame::user,
              text("--coverage, --abstain, --unusual, --nearest, --explain and --ensemble are for task classify; this "
                   "run's is ",
                   name_of(trained.job.task)),
              "leave them out");
}

void refuse_ensemble(const TrustOptions& options) {
  if (options.ensemble.empty() || !(options.coverage || options.abstain || options.unusual || options.nearest > 0))
    return;
  throw Error(Blame::user, "--coverage, --abstain, --unusual and --nearest are of one network, not of an ensemble",
              "leave out --ensemble: its own --top says how sure it is");
}

}  // namespace

TrustOptions trust_options(const base::Arguments& arguments) {
  TrustOptions options;
  options.coverage = share_option(arguments, "--coverage");
  options.abstain = share_option(arguments, "--abstain");
  options.unusual = share_option(arguments, "--unusual");
  options.nearest = arguments.int_or("--nearest", 0);
  options.explain = arguments.value_or("--explain", "");
  options.ensemble = arguments.values("--ensemble");
  const std::string sets = arguments.value_or("--sets", "lac");
  if (sets != "lac" && sets != "aps") {
    throw Error(Blame::user, text("--sets is '", sets, "'"), "lac: small sets; aps: as good for hard images");
  }
  options.sets = sets == "lac" ? trust::SetMethod::lac : trust::SetMethod::aps;
  options.score = arguments.value_or("--score", options.score);
  if (options.score != "energy" && options.score != "mahalanobis" && options.score != "neighbour") {
    throw Error(Blame::user, text("--score is '", options.score, "'"), "energy, mahalanobis or neighbour");
  }
  options.heat = arguments.value_or("--heat", "");
  if (!options.heat.empty()) insight::heat_method_named(options.heat);
  if (options.nearest < 0) throw Error(Blame::user, "--nearest must not be negative", "--nearest 3");
  const std::pair<const char*, const char*> needs[] = {
      {"--sets", "--coverage"}, {"--score", "--unusual"}, {"--heat", "--explain"}};
  for (const auto& [option, other] : needs) {
    if (arguments.has(option) && !arguments.has(other)) {
      throw Error(Blame::user, text(option, " is for ", other), text("add ", other, ", or leave it out"));
    }
  }
  return options;
}

TrustedAnswers::TrustedAnswers(const training::Trained& trained, TrustOptions options)
    : options_(std::move(options)), classes_(trained.classes) {
  refuse_task(options_, trained);
  refuse_ensemble(options_);
  if (trained.job.task != spec::Task::classify) return;
  const bool needs_calibration = options_.coverage || options_.abstain || options_.unusual;
  const bool is_there = !trained.trust.empty() && base::is_there(trust::calibration_file(trained.trust));
  const bool is_run = !trained.run.empty();
  const std::string calibrate =
      text("lockstep eval ", base::shell_path(is_run ? trained.run.string() : "RUN"), " --calibrate");
  if (needs_calibration && !is_there) {
    throw Error(
        Blame::user,
        text(is_run ? "this run is" : "these weights are", " not calibrated: no share of right answers is known"),
        is_run ? calibrate : text(calibrate, "; for a version of a store, lockstep store add after it"));
  }
  const bool by_features = options_.nearest > 0 || (options_.unusual && options_.score != "energy");
  if (is_there || by_features) {
    const auto terms = results::terms_of(trained.job, trained.weights, trained.classes, 0);
    if (is_there) {
      try {
        calibration_ = trust::read_calibration(trained.trust, terms);
      } catch (const Error& error) {
        if (needs_calibration || error.blame() != Blame::user) throw;
        note_ = text("confidences are not calibrated: ", error.what());
      }
    }
    if (by_features) features_ = trust::read_features(trained.run, terms.weights_sha256);
    if (by_features && !features_) {
      throw Error(Blame::user,
                  is_run ? "this run has no features of its training images"
                         : "features of training images are kept in a run folder alone, and this is none",
                  text(calibrate, " --features"));
    }
    if (features_ && features_->classes > static_cast<int64_t>(classes_.size())) {
      throw Error(Blame::user, text(trust::features_file(trained.run).string(), ": more classes than the run has"),
                  text(calibrate, " --features"));
    }
  }
  if (options_.abstain) least_confidence_ = calibration_->least_confidence(*options_.abstain);
  if (options_.unusual) unusual_below_ = calibration_->unusual_below(options_.score, *options_.unusual);
  // What these rows cannot promise is said before any image is read.
  if (options_.coverage) calibration_->set_for(std::vector<float>(classes_.size()), *options_.coverage, options_.sets);
}

void TrustedAnswers::add(Json& record, std::span<const float> logits, std::span<const float> feature) const {
  if (options_.coverage) {
    const auto chosen = calibration_->set_for(logits, *options_.coverage, options_.sets);
    std::vector<std::string> names;
    names.reserve(chosen.size());
    for (const int64_t label : chosen) {
      names.push_back(classes_[static_cast<size_t>(label)]);
    }
    record["set"] = Json::array_of(names);
    record["coverage"] = *options_.coverage;
  }
  if (options_.abstain) {
    const auto shares = calibration_->probabilities(logits);
    record["abstained"] = shares[static_cast<size_t>(trust::top_class(shares))] < least_confidence_;
  }
  if (options_.unusual) {
    const double score = options_.score == "energy"        ? trust::energy_score(logits)
                         : options_.score == "mahalanobis" ? features_->gaussians.score(feature)
                                                           : features_->neighbour_score(feature);
    record["unusual"] = score < unusual_below_;
    record["score"] = score;
  }
  if (options_.nearest > 0) {
    Json& near = record["nearest"] = Json::array();
    for (const auto& row : trust::nearest_rows(features_->rows(), feature, options_.nearest)) {
      const auto at = static_cast<size_t>(row.row);
      Json entry = Json::object();
      entry["name"] = features_->names[at];
      entry["class"] = classes_[static_cast<size_t>(features_->labels[at])];
      entry["distance"] = row.distance;
      near.push_back(std::move(entry));
    }
  }
}

std::vector<std::string> TrustedAnswers::columns() const {
  std::vector<std::string> all;
  if (options_.coverage) all.emplace_back("set");
  if (options_.abstain) all.emplace_back("abstained");
  if (options_.unusual) all.emplace_back("unusual");
  if (options_.nearest > 0) all.emplace_back("nearest");
  if (!options_.ensemble.empty()) all.emplace_back("disagreement");
  return all;
}

void TrustedAnswers::add_terms(Json& keys) const {
  if (calibration_) keys["temperature"] = calibration_->temperature;
  if (options_.coverage) {
    keys["--coverage"] = *options_.coverage;
    keys["--sets"] = options_.sets == trust::SetMethod::lac ? "lac" : "aps";
  }
  if (options_.abstain) keys["--abstain"] = *options_.abstain;
  if (options_.unusual) {
    keys["--unusual"] = *options_.unusual;
    keys["--score"] = options_.score;
  }
  if (options_.nearest > 0) keys["--nearest"] = options_.nearest;
  if (!options_.ensemble.empty()) keys["--ensemble"] = Json::array_of(options_.ensemble);
}

std::string trust_words(const Json& record) {
  std::string words;
  if (const Json* set = record.find("set")) {
    words +=
        text("  {", member_cell(record, "set", ", "), "} at ", base::percent(record.at("coverage").as_double(), 1));
    if (set->size() > 1) words += text(", ", set->size(), " classes");
  }
  if (const Json* abstained = record.find("abstained"); abstained && abstained->as_bool()) words += "  abstains";
  if (const Json* unusual = record.find("unusual"); unusual && unusual->as_bool()) words += "  unusual";
  if (record.contains("disagreement")) {
    words += text("  disagreement ", base::fixed(record.at("disagreement").as_double(), 3));
  }
  if (record.contains("nearest")) words += text("  like ", member_cell(record, "nearest", ", "));
  return words;
}

std::string member_cell(const Json& record, const std::string& member, std::string_view between) {
  const Json* value = record.find(member);
  if (!value) return "";
  if (value->is_number()) return base::fixed(value->as_double(), 6);
  if (!value->is_array()) return value->as_bool() ? "yes" : "no";
  std::vector<std::string> words;
  words.reserve(value->size());
  for (const auto& item : value->items()) {
    words.push_back(item.is_string() ? item.as_string()
                                     : text(item.at("name").as_string(), " (", item.at("class").as_string(), ")"));
  }
  return base::join(words, between);
}

}  // namespace lockstep::verbs::predict
