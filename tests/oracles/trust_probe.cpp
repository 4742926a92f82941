// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/trust.py: a JSON object a line on standard input, an answer of one line for each.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/trust/bootstrap.h"
#include "lockstep/trust/conformal.h"
#include "lockstep/trust/label_errors.h"
#include "lockstep/trust/outliers.h"
#include "lockstep/trust/reliability.h"
#include "lockstep/trust/selective.h"
#include "lockstep/trust/temperature.h"

namespace {

using namespace lockstep;
using base::Json;

std::vector<double> numbers(const Json& array) {
  std::vector<double> all;
  all.reserve(array.size());
  for (const auto& item : array.items()) all.push_back(item.as_double());
  return all;
}

std::vector<float> floats(const Json& array) {
  std::vector<float> all;
  all.reserve(array.size());
  for (const auto& item : array.items()) all.push_back(static_cast<float>(item.as_double()));
  return all;
}

trust::ClassRows rows_of(const Json& question) {
  trust::ClassRows rows;
  const auto& logits = question.at("logits").items();
  const auto& labels = question.at("labels").items();
  for (size_t i = 0; i < logits.size(); ++i) {
    rows.add(floats(logits[i]), labels[i].as_int(), static_cast<int64_t>(i));
  }
  return rows;
}

void add_sets(Json& answer, const Json& question, const trust::ClassRows& rows, trust::SetMethod method) {
  const auto scores = trust::calibration_scores(rows, 1, method);
  answer["thresholds"] = Json::array();
  answer["sets"] = Json::array();
  for (const double coverage : {0.8, 0.9, 0.95}) {
    const double threshold = *trust::conformal_threshold(scores, coverage);
    answer["thresholds"].push_back(threshold);
    Json sets = Json::array();
    for (const auto& row : question.at("others").items()) {
      const auto logits = floats(row);
      const double u = trust::draw_for(logits);
      sets.push_back(Json::array_of(trust::prediction_set(trust::softmax(logits), threshold, method, u)));
    }
    answer["sets"].push_back(std::move(sets));
  }
}

Json classes_answer(const Json& question) {
  const trust::ClassRows rows = rows_of(question);
  const double temperature = trust::fit_temperature(rows);
  Json answer = trust::reliability(rows).to_json();
  answer["temperature"] = temperature;
  answer["calibrated_nll"] = trust::reliability(rows, temperature).nll;
  answer["aurc"] = trust::risk_coverage(trust::answers(rows)).aurc;
  add_sets(answer, question, rows, trust::SetMethod::lac);
  Json& aps = answer["aps"] = Json::object();
  add_sets(aps, question, rows, trust::SetMethod::aps);
  aps["scores"] = Json::array_of(trust::calibration_scores(rows, 1, trust::SetMethod::aps));
  aps["draws"] = Json::array();
  for (int64_t i = 0; i < rows.size(); ++i) aps["draws"].push_back(trust::draw_for(rows.row(i)));
  aps["other_draws"] = Json::array();
  for (const auto& row : question.at("others").items()) aps["other_draws"].push_back(trust::draw_for(floats(row)));
  answer["candidates"] = Json::array();
  answer["candidate_scores"] = Json::array();
  for (const auto& candidate : trust::label_candidates(rows)) {
    answer["candidates"].push_back(candidate.row);
    answer["candidate_scores"].push_back(candidate.score);
  }
  answer["energy"] = trust::energy_score(rows.row(0), 2);
  return answer;
}

Json features_answer(const Json& question) {
  std::vector<float> features;
  std::vector<int64_t> labels;
  int64_t classes = 0;
  for (const auto& row : question.at("features").items()) {
    for (const float value : floats(row)) features.push_back(value);
  }
  for (const auto& label : question.at("labels").items()) {
    labels.push_back(label.as_int());
    classes = std::max(classes, label.as_int() + 1);
  }
  const auto width = static_cast<int64_t>(features.size() / labels.size());
  const trust::FeatureRows rows{width, features, labels, classes};
  const auto gaussians = trust::fit_gaussians(rows);
  Json answer = Json::object();
  answer["mahalanobis"] = Json::array();
  answer["neighbour"] = Json::array();
  for (const auto& row : question.at("others").items()) {
    answer["mahalanobis"].push_back(gaussians.score(floats(row)));
    answer["neighbour"].push_back(trust::neighbour_score(rows, floats(row), 5));
  }
  return answer;
}

Json interval_answer(const Json& question) {
  const auto interval = trust::bca_interval(question.at("observed").as_double(), numbers(question.at("resampled")),
                                            numbers(question.at("left_out")), 0.95);
  return Json::array({interval.low, interval.high});
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const Json question = base::parse_json(line, "standard input", {.max_bytes = size_t{1} << 28U});
    const Json answer = question.contains("resampled")  ? interval_answer(question)
                        : question.contains("features") ? features_answer(question)
                                                        : classes_answer(question);
    std::printf("%s\n", answer.dump(-1).c_str());
  }
  return 0;
}
