// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/calibration.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/trust/outliers.h"
#include "lockstep/trust/selective.h"
#include "lockstep/trust/temperature.h"

namespace lockstep::trust {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr int64_t kFormat = 1;
constexpr base::JsonLimits kLargeCalibration{.max_bytes = size_t{1} << 30};

void check_share(double share, const char* what) {
  if (share > 0 && share < 1) return;
  throw Error(Blame::user, text(what, " is ", share), "a number between 0 and 1, such as 0.95");
}

std::vector<double> numbers_of(const Json& array) {
  std::vector<double> values;
  values.reserve(array.size());
  for (const auto& item : array.items()) values.push_back(item.as_double());
  return values;
}

const char* more_rows() {
  return "calibrate with more labelled images: lockstep eval RUN --calibrate --data FOLDER";
}

}  // namespace

std::vector<int64_t> Calibration::set_for(std::span<const float> logits, double coverage, SetMethod method) const {
  check_share(coverage, "the coverage of a set");
  const auto threshold = conformal_threshold(method == SetMethod::lac ? lac : aps, coverage);
  if (!threshold) {
    throw Error(
        Blame::user,
        text("a coverage of ", coverage, " needs ", fewest_rows(coverage), " rows for its threshold, and ",
             threshold_rows(), " were there"),
        text("ask for ",
             base::fixed(static_cast<double>(threshold_rows()) / static_cast<double>(threshold_rows() + 1) - 0.0005, 3),
             " at most, or ", more_rows()));
  }
  return prediction_set(probabilities(logits), *threshold, method, draw_for(logits));
}

double Calibration::least_confidence(double risk) const {
  check_share(risk, "the share of wrong answers");
  if (const auto found = confidence_for_risk(answers, risk)) return *found;
  const int64_t wrong =
      std::count_if(answers.begin(), answers.end(), [](const Answer& answer) { return !answer.right; });
  throw Error(Blame::user,
              text("no confidence is known above which at most ", base::percent(risk), " of the answers are wrong: ",
                   wrong, " of ", answers.size(), " were, and they are among the surest or the rows are too few"),
              text("allow more, or ", more_rows()));
}

double Calibration::unusual_below(const std::string& score, double rate) const {
  check_share(rate, "the rate of false alarms");
  const auto found = known.find(score);
  if (found == known.end()) {
    throw Error(Blame::user, text("there is no threshold for the score '", score, "'"),
                "lockstep eval RUN --calibrate --features, which keeps features of the training images");
  }
  if (const auto threshold = alarm_threshold(found->second, rate)) return *threshold;
  throw Error(Blame::user,
              text("a false-alarm rate of ", rate, " needs ", static_cast<int64_t>(std::ceil(1 / rate - 1 - 1e-9)),
                   " rows for its threshold, and ", threshold_rows(), " were there"),
              text("ask for more, or ", more_rows()));
}

RowUse use_of(int64_t sample_id) {
  static const uint64_t seed = base::derive_seed(0, "calibrate");
  const double at = base::Random(seed, 0, static_cast<uint64_t>(sample_id)).uniform();
  return at < 0.25 ? RowUse::temperature : at < 0.5 ? RowUse::thresholds : RowUse::report;
}

Calibration calibrate(const ClassRows& rows) {
  if (rows.size() < kFewestCalibrationRows) {
    throw Error(Blame::user, text(rows.size(), " rows are too few to calibrate with"),
                text("at least ", kFewestCalibrationRows, " labelled images that were not trained on: --data FOLDER"));
  }
  std::vector<int64_t> fit, thresholds;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const RowUse use = use_of(rows.ids[static_cast<size_t>(i)]);
    if (use == RowUse::temperature) fit.push_back(i);
    if (use == RowUse::thresholds) thresholds.push_back(i);
  }
  if (fit.empty() || thresholds.empty()) {
    throw Error(Blame::user, "none of these rows fell to the temperature or to the thresholds", "give more rows");
  }
  Calibration result;
  result.fitted_rows = static_cast<int64_t>(fit.size());
  result.temperature = fit_temperature(rows.select(fit));
  const ClassRows others = rows.select(thresholds);
  result.lac = calibration_scores(others, result.temperature, SetMethod::lac);
  result.aps = calibration_scores(others, result.temperature, SetMethod::aps);
  result.answers = answers(others, result.temperature);
  std::vector<double>& energy = result.known["energy"];
  energy.reserve(thresholds.size());
  for (int64_t i = 0; i < others.size(); ++i) energy.push_back(energy_score(others.row(i)));
  std::sort(energy.begin(), energy.end());
  return result;
}

Json Calibration::to_json() const {
  Json all = Json::object();
  all["format"] = kFormat;
  all["name"] = terms.name;
  all["weights_sha256"] = terms.weights_sha256;
  all["keys"] = terms.keys;
  all["classes"] = Json::array_of(terms.classes);
  all["which"] = which;
  all["data"] = data;
  all["part"] = part;
  all["samples"] = samples;
  all["temperature"] = temperature;
  all["fitted_rows"] = fitted_rows;
  all["threshold_rows"] = threshold_rows();
  all["lac"] = Json::array_of(lac);
  all["aps"] = Json::array_of(aps);
  all["confidence"] = Json::array();
  all["right"] = Json::array();
  for (const auto& answer : answers) {
    all["confidence"].push_back(answer.confidence);
    all["right"].push_back(answer.right);
  }
  all["known"] = Json::object();
  for (const auto& [name, scores] : known) all["known"][name] = Json::array_of(scores);
  return all;
}

Calibration Calibration::from_json(const Json& document) {
  if (document.int_or("format", 0) != kFormat) {
    throw Error(Blame::user, text(document.where(), ": this is no calibration of format ", kFormat),
                "make it again: lockstep eval RUN --calibrate");
  }
  Calibration result;
  result.terms = {document.at("name").as_string(), document.at("weights_sha256").as_string(), document.at("keys"), {}};
  result.terms.classes.reserve(document.at("classes").size());
  for (const auto& name : document.at("classes").items()) result.terms.classes.push_back(name.as_string());
  result.which = document.string_or("which", "");
  result.data = document.string_or("data", "");
  result.part = document.string_or("part", "");
  result.samples = document.string_or("samples", "");
  result.fitted_rows = document.int_or("fitted_rows", 0);
  result.temperature = document.at("temperature").as_double();
  result.lac = numbers_of(document.at("lac"));
  result.aps = numbers_of(document.at("aps"));
  const auto& right = document.at("right").items();
  const auto confidence = numbers_of(document.at("confidence"));
  const bool is_whole = confidence.size() == right.size() && result.lac.size() == right.size() &&
                        result.aps.size() == right.size() && std::is_sorted(result.lac.begin(), result.lac.end()) &&
                        std::is_sorted(result.aps.begin(), result.aps.end()) && result.temperature > 0;
  if (!is_whole) {
    throw Error(Blame::user, text(document.where(), ": the calibration is damaged"),
                "make it again: lockstep eval RUN --calibrate");
  }
  result.answers.reserve(right.size());
  for (size_t i = 0; i < right.size(); ++i) result.answers.push_back({0, confidence[i], right[i].as_bool()});
  for (const auto& member : document.at("known").members()) result.known[member.key] = numbers_of(member.value);
  return result;
}

base::Path calibration_file(const base::Path& run) {
  return run / "trust.json";
}

void write_calibration(const base::Path& run, const Calibration& calibration) {
  base::write_json(calibration_file(run), calibration.to_json());
}

std::optional<Calibration> read_calibration(const base::Path& run) {
  if (run.empty() || !base::is_there(calibration_file(run))) return std::nullopt;
  return Calibration::from_json(base::read_json(calibration_file(run), kLargeCalibration));
}

std::optional<Calibration> read_calibration(const base::Path& run, const results::Terms& network) {
  auto found = read_calibration(run);
  if (!found) return found;
  const std::string other = results::difference(found->terms, network);
  if (other.empty()) return found;
  throw Error(Blame::user, text(calibration_file(run).string(), " belongs to another network: ", other),
              text("lockstep eval ", base::shell_path(run.string()), " --calibrate"));
}

double share_from(const std::string& word, const std::string& option) {
  double value = 0;
  const bool is_percent = word.ends_with('%');
  const char* end = word.data() + word.size() - (is_percent ? 1 : 0);
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (is_percent) value /= 100;
  if (error == std::errc() && stop == end && value > 0 && value < 1) return value;
  throw Error(Blame::user, text(option, " ", word), "a number between 0 and 1, such as 0.95");
}

}  // namespace lockstep::trust
