// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/ordinal.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/kept_rows.h"

namespace lockstep::task {
namespace {

using base::fixed;
using base::Json;
using base::percent;
using base::text;

class GradeEncoder final : public ImageEncoder {
 public:
  using ImageEncoder::ImageEncoder;

 protected:
  void encode_rest(const StoredSample& sample, FieldPointers rest) override { put<int64_t>(rest[0], sample.label); }
  void draw_rest(int32_t label, base::Random /*random*/, FieldPointers rest) override { put<int64_t>(rest[0], label); }
  void blank_rest(FieldPointers rest) override { put<int64_t>(rest[0], -1); }
};

std::vector<double> probabilities_of(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> all;
  double sum = 0;
  for (const float logit : logits) sum += all.emplace_back(std::exp(logit - most));
  for (double& one : all) one /= sum;
  return all;
}

// The median of the probabilities: no class has a smaller expected distance to the label.
template <class Share>
int64_t median_class(std::span<const Share> probabilities) {
  double below = 0;
  for (size_t c = 0; c + 1 < probabilities.size(); ++c) {
    below += static_cast<double>(probabilities[c]);
    if (below > 0.5) return static_cast<int64_t>(c);
  }
  return std::ssize(probabilities) - 1;
}

// As objective/ordinal.h: each border's cross-entropy.
double border_loss(const std::vector<double>& probabilities, int64_t label) {
  double below = 0, loss = 0;
  const auto cost = [](double probability) { return -std::log(std::max(probability, 1e-300)); };
  for (int64_t border = 0; border + 1 < std::ssize(probabilities); ++border) {
    below += probabilities[static_cast<size_t>(border)];
    double above = 0;  // summed on its own: 1 - below has nothing left of a small one
    for (int64_t c = border + 1; c < std::ssize(probabilities); ++c) above += probabilities[static_cast<size_t>(c)];
    loss += cost(label > border ? above : below);
  }
  return loss;
}

struct Graded {
  int64_t id = 0, label = 0, answer = 0;
  double loss = 0;
};

// Sums are taken in the order of the samples, so that ranks cannot change them.
class OrdinalScore final : public Score {
 public:
  OrdinalScore(std::vector<std::string> classes, int64_t worst)
      : classes_(std::move(classes)), keep_(static_cast<size_t>(worst)) {}

  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const int64_t label = *rows.field("label").values<int64_t>(i);
      if (label < 0) continue;
      const auto probabilities = probabilities_of(rows.output("logits").row(i));
      rows_.add({rows.sample_ids[static_cast<size_t>(i)], label, median_class(std::span<const double>(probabilities)),
                 border_loss(probabilities, label)});
    }
  }
  std::string pack() const override { return rows_.pack(); }
  void merge(std::string_view packed) override { rows_.merge(packed); }
  int64_t samples() const override { return rows_.size(); }
  bool is_sound() const override { return std::isfinite(mean(loss_of)); }
  Headline headline() const override {
    const double value = mean(distance);
    return {"mae", value, false, text("mean absolute class error ", fixed(value, 4))};
  }
  Json figures() const override {
    Json all = Json::object();
    all["loss"] = mean(loss_of);
    all["mae"] = mean(distance);
    all["accuracy"] = mean([](const Graded& row) { return row.label == row.answer ? 1.0 : 0.0; });
    all["kappa"] = kappa();
    return all;
  }
  std::string line() const override {
    const Json all = figures();
    return text(headline().text, "  accuracy ", percent(all.at("accuracy").as_double(), 2), "  kappa ",
                fixed(all.at("kappa").as_double(), 4), "  loss ", fixed(all.at("loss").as_double(), 4));
  }
  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    all["worst"] = Json::array();
    std::vector<Graded> worst = rows_.in_order();
    std::erase_if(worst, [](const Graded& row) { return row.label == row.answer; });
    std::stable_sort(worst.begin(), worst.end(), [](const Graded& a, const Graded& b) {
      return distance(a) != distance(b) ? distance(a) > distance(b) : a.loss > b.loss;
    });
    worst.resize(std::min(worst.size(), keep_));
    for (const Graded& row : worst) {
      Json mistake = Json::object();
      mistake["sample"] = row.id;
      mistake["target"] = classes_[static_cast<size_t>(row.label)];
      mistake["predicted"] = classes_[static_cast<size_t>(row.answer)];
      mistake["loss"] = row.loss;
      all["worst"].push_back(std::move(mistake));
    }
    return all;
  }
  std::string to_text() const override {
    base::Table table({{"class"}, {"images", base::Align::right}, {"mean absolute class error", base::Align::right}});
    for (size_t c = 0; c < classes_.size(); ++c) {
      int64_t count = 0;
      double sum = 0;
      for (const Graded& row : rows_.in_order()) {
        if (row.label == static_cast<int64_t>(c)) ++count, sum += distance(row);
      }
      table.add({classes_[c], std::to_string(count), count > 0 ? fixed(sum / static_cast<double>(count), 3) : "-"});
    }
    return text("  ", line(), "\n\n", table.to_text());
  }

 private:
  static double distance(const Graded& row) { return static_cast<double>(std::abs(row.label - row.answer)); }
  static double loss_of(const Graded& row) { return row.loss; }
  double kappa() const {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const Graded& row : rows_.in_order()) pairs.emplace_back(row.label, row.answer);
    return quadratic_kappa(pairs, std::ssize(classes_));
  }
  template <class Of>
  double mean(const Of& of) const {
    double sum = 0;
    for (const Graded& row : rows_.in_order()) sum += of(row);
    return samples() == 0 ? 0 : sum / static_cast<double>(samples());
  }

  std::vector<std::string> classes_;
  size_t keep_;
  KeptRows<Graded> rows_;
};

class Ordinal final : public Task {
 public:
  Ordinal(const spec::Job& job, std::vector<std::string> classes) : data_(job.data), classes_(std::move(classes)) {
    for (auto i = std::ssize(classes_); i < job.model.classes; ++i) classes_.push_back(text(i));
  }

  std::vector<Field> fields() const override {
    return {image_field(data_), {.name = "label", .element = Element::int64}};
  }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<GradeEncoder>(data_); }
  Classes classes() const override { return Classes::of_samples; }
  int64_t num_outputs() const override { return std::ssize(classes_); }
  std::unique_ptr<Score> score(int64_t worst) const override { return std::make_unique<OrdinalScore>(classes_, worst); }
  Json report_words() const override {
    return base::parse_json(R"({"title": "Mean absolute class error", "share": false, "higher_is_better": false,
                                "training": "absolute_error", "validation": "mae", "also": {}})",
                            "report words");
  }
  NetworkWords network_words() const override {
    return {.gives = "one of several classes in an order: softmax of the outputs", .activation = "softmax"};
  }
  // "class": the answer; "expected": the mean position in the order, from 0; "probabilities": by class, in their order.
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    const auto shares = rows.output("probabilities").row(i);
    Json record = Json::object(), by_class = Json::object();
    double expected = 0;
    for (size_t c = 0; c < shares.size(); ++c) {
      expected += static_cast<double>(c) * shares[c];
      by_class[classes_[c]] = static_cast<double>(shares[c]);
    }
    record["class"] = classes_[static_cast<size_t>(median_class(shares))];
    record["expected"] = expected;
    record["probabilities"] = std::move(by_class);
    return record;
  }
  std::string line(const Json& record) const override {
    const std::string& answer = record.at("class").as_string();
    return text(answer, " ", percent(record.at("probabilities").at(answer).as_double()), ", expected position ",
                fixed(record.at("expected").as_double(), 2));
  }
  std::vector<std::string> columns(int64_t /*top*/) const override {
    std::vector<std::string> all{"label", "expected"};
    all.insert(all.end(), classes_.begin(), classes_.end());
    return all;
  }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    std::vector<std::string> all{record.at("class").as_string(), fixed(record.at("expected").as_double(), 6)};
    for (const auto& member : record.at("probabilities").members()) all.push_back(fixed(member.value.as_double(), 6));
    return all;
  }

 private:
  spec::Data data_;
  std::vector<std::string> classes_;  // by label; numbers where nobody named them
};

}  // namespace

double quadratic_kappa(std::span<const std::pair<int64_t, int64_t>> pairs, int64_t num_classes) {
  if (pairs.empty()) return 0;
  const auto count = static_cast<double>(pairs.size());
  std::vector<double> labels(static_cast<size_t>(num_classes)), answers(static_cast<size_t>(num_classes));
  double seen = 0, by_chance = 0;  // squared distances
  for (const auto& [label, answer] : pairs) {
    ++labels[static_cast<size_t>(label)];
    ++answers[static_cast<size_t>(answer)];
    seen += static_cast<double>((label - answer) * (label - answer));
  }
  for (size_t a = 0; a < labels.size(); ++a) {
    for (size_t b = 0; b < answers.size(); ++b) {
      by_chance += labels[a] * answers[b] / count * std::pow(static_cast<double>(a) - static_cast<double>(b), 2);
    }
  }
  return by_chance > 0 ? 1 - seen / by_chance : 1;
}

std::unique_ptr<Task> make_ordinal(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<Ordinal>(job, std::move(classes));
}

}  // namespace lockstep::task
