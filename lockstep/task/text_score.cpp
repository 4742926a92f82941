// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/text_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/kept_rows.h"
#include "lockstep/task/metrics.h"
#include "lockstep/task/multilabel.h"

namespace lockstep::task {
namespace {

using base::Align;
using base::fixed;
using base::Json;
using base::percent;
using base::text;

constexpr size_t kConfidenceBins = 15;

struct SentenceAnswer {
  int64_t id = 0;
  int64_t is_positive = 0, is_right = 0;
  double odds = 0;        // log odds of the positive class: probabilities near 1 are all alike
  double confidence = 0;  // probability of the class that was said; of no number: 0
};

struct ConfidenceBin {
  int64_t rows = 0, right = 0;
  double confidence = 0;  // sum
};

double log_sum(std::span<const float> logits, int64_t without) {
  double most = -INFINITY, sum = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    if (static_cast<int64_t>(c) != without) most = std::max<double>(most, logits[c]);
  }
  for (size_t c = 0; c < logits.size(); ++c) {
    if (static_cast<int64_t>(c) != without) sum += std::exp(static_cast<double>(logits[c]) - most);
  }
  return most + std::log(sum);
}

double ratio_of(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

// Counts are whole numbers and sums are taken in the order of the samples: ranks cannot change them.
class TextScore final : public Score {
 public:
  TextScore(std::vector<std::string> classes, int64_t positive, int64_t worst)
      : classes_(std::move(classes)), positive_(positive), metrics_(std::ssize(classes_), worst) {}

  void add(const Rows& rows) override {
    const auto& logits = rows.output("logits");
    const int64_t* labels = rows.field("label").values<int64_t>();
    metrics_.add(logits.values, {labels, static_cast<size_t>(rows.size())}, rows.sample_ids);
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (labels[i] < 0) continue;
      answers_.add(answer_of(rows.sample_ids[static_cast<size_t>(i)], logits.row(i), labels[i]));
    }
    for (size_t i = 0; i < rows.annotations.size(); ++i) {
      if (is_among_worst(rows.sample_ids[i]) && !rows.annotations[i].empty())
        annotations_[rows.sample_ids[i]] = rows.annotations[i];
    }
    forget_others();
  }

  std::string pack() const override {
    const std::vector<double> numbers = metrics_.pack();
    Json annotations = Json::object();
    for (const auto& [id, words] : annotations_) annotations[std::to_string(id)] = words;
    return join_parts({{reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)},
                       answers_.pack(),
                       annotations.dump(-1)});
  }

  void merge(std::string_view packed) override {
    const std::string_view numbers = next_part(packed);
    std::vector<double> values(numbers.size() / sizeof(double));
    std::memcpy(values.data(), numbers.data(), values.size() * sizeof(double));
    metrics_.merge(Metrics::unpack(values));
    answers_.merge(next_part(packed));
    const Json annotations =
        base::parse_json(next_part(packed), "the score of a rank", {.max_bytes = size_t{1} << 30U});
    for (const auto& member : annotations.members()) annotations_[std::stoll(member.key)] = member.value.as_string();
    forget_others();
  }

  int64_t samples() const override { return metrics_.samples(); }
  bool is_sound() const override { return std::isfinite(metrics_.loss()); }
  Headline headline() const override {
    const double f1 = metrics_.score(positive_).f1;
    return {"f1", f1, true, text("F1 ", fixed(f1, 4))};
  }

  Json figures() const override {
    const ClassScore found = metrics_.score(positive_);
    Json all = Json::object();
    all["loss"] = metrics_.loss();
    all["f1"] = found.f1;
    all["precision"] = found.precision;
    all["recall"] = found.recall;
    all["accuracy"] = metrics_.top1();
    all["average_precision"] = ranking();
    all["ece"] = calibration_error(bins());
    if (metrics_.nonfinite() > 0) all["nonfinite"] = metrics_.nonfinite();
    if (metrics_.loss_cut() > 0) all["loss_cut"] = metrics_.loss_cut();
    return all;
  }

  std::string line() const override {
    const ClassScore found = metrics_.score(positive_);
    return text(headline().text, "  precision ", percent(found.precision), "  recall ", percent(found.recall),
                "  accuracy ", percent(metrics_.top1(), 2), "  average precision ", fixed(ranking(), 4), "  ECE ",
                fixed(calibration_error(bins()), 4), "  loss ", metrics_.loss_text());
  }

  Json to_json() const override {
    Json all = task::to_json(metrics_, classes_);
    const Json own = figures();
    for (const auto& member : own.members()) all[member.key] = member.value;
    all.erase("top1");
    all.erase("top5");
    all["positive"] = classes_[static_cast<size_t>(positive_)];
    all["constant"] = constant();
    Json worst = Json::array();
    for (const auto& mistake : all.at("worst").items()) {
      Json row = mistake;
      const auto found = annotations_.find(mistake.at("sample").as_int());
      if (found != annotations_.end()) row["text"] = base::parse_json(found->second, "annotation").at("text");
      worst.push_back(std::move(row));
    }
    all["worst"] = std::move(worst);
    add_curves(all);
    return all;
  }

  std::string to_text() const override {
    base::Table table({{"class"},
                       {"sentences", Align::right},
                       {"precision", Align::right},
                       {"recall", Align::right},
                       {"F1", Align::right}});
    for (int64_t label = 0; label < metrics_.classes(); ++label) {
      const ClassScore score = metrics_.score(label);
      table.add({classes_[static_cast<size_t>(label)], std::to_string(score.samples), percent(score.precision),
                 percent(score.recall), fixed(score.f1, 3)});
    }
    const Json always = constant();
    return text("  ", line(), "\n\n", table.to_text(), "  always ", always.at("class").as_string(), ": accuracy ",
                percent(always.at("accuracy").as_double(), 2), "; always ", classes_[static_cast<size_t>(positive_)],
                ": F1 ", fixed(always.at("f1").as_double(), 4), "\n");
  }

 private:
  SentenceAnswer answer_of(int64_t id, std::span<const float> logits, int64_t label) const {
    const bool has_nan = std::any_of(logits.begin(), logits.end(), [](float value) { return std::isnan(value); });
    const auto most = std::max_element(logits.begin(), logits.end());
    const int64_t said = has_nan ? -1 : most - logits.begin();
    const double odds = logits[static_cast<size_t>(positive_)] - log_sum(logits, positive_);
    return {id, label == positive_, said == label, odds, has_nan ? 0 : std::exp(*most - log_sum(logits, -1))};
  }

  bool is_among_worst(int64_t id) const {
    const auto& worst = metrics_.worst();
    return std::any_of(worst.begin(), worst.end(), [&](const Mistake& mistake) { return mistake.sample_id == id; });
  }
  void forget_others() {
    std::erase_if(annotations_, [this](const auto& one) { return !is_among_worst(one.first); });
  }

  double ranking() const {
    std::vector<Ranked> ranked;
    for (const SentenceAnswer& answer : answers_.in_order())
      ranked.push_back({static_cast<float>(answer.odds), answer.is_positive != 0});
    return average_precision(std::move(ranked));
  }

  // As trust/reliability.h has them: (low, high], by the confidence of what was said.
  std::array<ConfidenceBin, kConfidenceBins> bins() const {
    std::array<ConfidenceBin, kConfidenceBins> all = {};
    for (const SentenceAnswer& answer : answers_.in_order()) {
      size_t at = 0;
      while (at + 1 < kConfidenceBins && answer.confidence > static_cast<double>(at + 1) / kConfidenceBins) ++at;
      ++all[at].rows;
      all[at].right += answer.is_right;
      all[at].confidence += answer.confidence;
    }
    return all;
  }

  double calibration_error(const std::array<ConfidenceBin, kConfidenceBins>& all) const {
    double sum = 0;
    for (const ConfidenceBin& bin : all) sum += std::abs(static_cast<double>(bin.right) - bin.confidence);
    return answers_.size() == 0 ? 0 : sum / static_cast<double>(answers_.size());
  }

  // What needs no network: the most frequent class for all, and the positive one for all.
  Json constant() const {
    int64_t most = 0;
    for (int64_t label = 1; label < metrics_.classes(); ++label) {
      if (metrics_.score(label).samples > metrics_.score(most).samples) most = label;
    }
    const int64_t positives = metrics_.score(positive_).samples;
    Json all = Json::object();
    all["class"] = classes_[static_cast<size_t>(most)];
    all["accuracy"] = ratio_of(metrics_.score(most).samples, samples());
    all["f1"] = ratio_of(2 * positives, samples() + positives);
    all["average_precision"] = ratio_of(positives, samples());
    return all;
  }

  void add_curves(Json& all) const {
    std::vector<SentenceAnswer> ranked = answers_.in_order();
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const SentenceAnswer& a, const SentenceAnswer& b) { return a.odds > b.odds; });
    const int64_t positives = metrics_.score(positive_).samples;
    constexpr size_t kPoints = 100;
    Json precision = Json::array(), reliability = Json::array();
    int64_t found = 0;
    for (size_t i = 0; i < ranked.size(); ++i) {
      found += ranked[i].is_positive;
      const bool is_end = i + 1 == ranked.size() || ranked[i + 1].odds != ranked[i].odds;
      if (!is_end || (ranked.size() > kPoints && i % (ranked.size() / kPoints) != 0)) continue;
      precision.push_back(
          Json::array({Json(ratio_of(found, positives)), Json(ratio_of(found, static_cast<int64_t>(i) + 1))}));
    }
    for (const ConfidenceBin& bin : bins()) {
      if (bin.rows == 0) continue;
      reliability.push_back(
          Json::array({Json(bin.confidence / static_cast<double>(bin.rows)), Json(ratio_of(bin.right, bin.rows))}));
    }
    const auto curve = [](const char* title, const char* x, const std::string& name, Json points) {
      Json series = Json::object(), one = Json::object();
      series["name"] = name;
      series["points"] = std::move(points);
      one["title"] = title;
      one["x"] = x;
      one["share"] = true;
      one["series"] = Json::array({std::move(series)});
      return one;
    };
    all["curves_of"] = "How sure it is";
    all["curves"] =
        Json::array({curve("Precision", "recall", classes_[static_cast<size_t>(positive_)], std::move(precision)),
                     curve("Share that is right", "confidence", "answers", std::move(reliability))});
  }

  std::vector<std::string> classes_;
  int64_t positive_;
  Metrics metrics_;
  KeptRows<SentenceAnswer> answers_;
  std::map<int64_t, std::string> annotations_;  // of the worst
};

}  // namespace

std::unique_ptr<Score> make_text_score(std::vector<std::string> classes, int64_t positive, int64_t worst) {
  return std::make_unique<TextScore>(std::move(classes), positive, worst);
}

}  // namespace lockstep::task
