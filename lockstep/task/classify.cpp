// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/classify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/image_encoder.h"

namespace lockstep::task {
namespace {

using base::Align;
using base::fixed;
using base::Json;
using base::percent;
using base::text;

constexpr int64_t kNoLabel = -1;
constexpr size_t kMostRows = 60;  // of the class table on a terminal

class LabelEncoder final : public ImageEncoder {
 public:
  using ImageEncoder::ImageEncoder;

 protected:
  void encode_rest(const StoredSample& sample, FieldPointers rest) override { put<int64_t>(rest[0], sample.label); }
  void draw_rest(int32_t label, base::Random /*random*/, FieldPointers rest) override { put<int64_t>(rest[0], label); }
  void blank_rest(FieldPointers rest) override { put(rest[0], kNoLabel); }
};

// Five answers of five or fewer classes are always right.
bool has_top5(int64_t num_classes) {
  return num_classes > 5;
}

// The labels in the order of their scores, weakest first.
std::vector<int64_t> weakest_first(const Metrics& metrics) {
  std::vector<int64_t> order(static_cast<size_t>(metrics.classes()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return metrics.score(a).f1 < metrics.score(b).f1; });
  return order;
}

std::string class_table(const Metrics& metrics, const std::vector<std::string>& names) {
  base::Table table({{"class"},
                     {"images", Align::right},
                     {"precision", Align::right},
                     {"recall", Align::right},
                     {"F1", Align::right}});
  const auto order = weakest_first(metrics);
  for (size_t i = 0; i < std::min(order.size(), kMostRows); ++i) {
    const auto score = metrics.score(order[i]);
    table.add({names[static_cast<size_t>(order[i])], std::to_string(score.samples), percent(score.precision),
               percent(score.recall), fixed(score.f1, 3)});
  }
  const std::string rest = order.size() > kMostRows ? text("  ... and ", order.size() - kMostRows, " more\n") : "";
  return table.to_text() + rest;
}

std::string confused_table(const Metrics& metrics, const std::vector<std::string>& names) {
  base::Table table({{"is"}, {"said"}, {"times", Align::right}, {"of", Align::right}});
  for (const auto& pair : metrics.most_confused(10)) {
    table.add({names[static_cast<size_t>(pair.target)], names[static_cast<size_t>(pair.predicted)],
               std::to_string(pair.count), std::to_string(metrics.score(pair.target).samples)});
  }
  return table.rows() > 0 ? "\nmost often confused\n" + table.to_text() : "";
}

std::vector<std::string> named(std::vector<std::string> classes, int64_t count) {
  for (auto i = static_cast<int64_t>(classes.size()); i < count; ++i) classes.push_back(text(i));
  return classes;
}

}  // namespace

Classify::Classify(const spec::Job& job, std::vector<std::string> classes)
    : data_(job.data),
      num_classes_(classes.empty() ? job.model.classes : static_cast<int64_t>(classes.size())),
      classes_(named(std::move(classes), num_classes_)) {}

std::vector<Field> Classify::fields() const {
  return {image_field(data_), {.name = "label", .element = Element::int64}};
}

std::unique_ptr<Encoder> Classify::encoder() const {
  return std::make_unique<LabelEncoder>(data_);
}

std::unique_ptr<Score> Classify::score(int64_t worst) const {
  return std::make_unique<ClassifyScore>(classes_, worst);
}

Json Classify::report_words() const {
  return base::parse_json(text(R"({"title": "Accuracy", "share": true, "higher_is_better": true, "training": "accuracy",
               "validation": "top1", "also": {)",
                               has_top5(num_classes_) ? R"("top-5": "top5")" : "", "}}"),
                          "report words");
}

NetworkWords Classify::network_words() const {
  return {.gives = "one of several classes for an image: softmax of the outputs", .activation = "softmax"};
}

Json Classify::record(const Rows& rows, int64_t i, int64_t top) const {
  const auto shares = rows.output("probabilities").row(i);
  std::vector<size_t> labels(shares.size());
  std::iota(labels.begin(), labels.end(), size_t{0});
  std::stable_sort(labels.begin(), labels.end(), [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  labels.resize(std::min(labels.size(), static_cast<size_t>(std::max<int64_t>(1, top))));
  Json classes = Json::array();
  for (const size_t label : labels) {
    Json entry = Json::object();
    entry["name"] = classes_[label];
    entry["probability"] = static_cast<double>(shares[label]);
    classes.push_back(std::move(entry));
  }
  Json record = Json::object();
  record["classes"] = std::move(classes);
  return record;
}

std::string Classify::line(const Json& record) const {
  std::vector<std::string> words;
  for (const auto& entry : record.at("classes").items()) {
    words.push_back(text(entry.at("name").as_string(), " ", percent(entry.at("probability").as_double())));
  }
  return base::join(words, ", ");
}

// label, confidence and the probability of each class; or label, confidence, label_2, confidence_2, ...
std::vector<std::string> Classify::columns(int64_t top) const {
  std::vector<std::string> all{"label", "confidence"};
  if (top == 0) all.insert(all.end(), classes_.begin(), classes_.end());
  for (int64_t i = 2; i <= std::min(top, num_classes_); ++i)
    all.insert(all.end(), {text("label_", i), text("confidence_", i)});
  return all;
}

std::vector<std::string> Classify::cells(const Json& record, int64_t top) const {
  const auto& answers = record.at("classes").items();
  const auto share = [](const Json& answer) { return fixed(answer.at("probability").as_double(), 6); };
  std::vector<std::string> all;
  for (size_t i = 0; i < (top == 0 ? 1 : answers.size()); ++i) {
    all.insert(all.end(), {answers[i].at("name").as_string(), share(answers[i])});
  }
  if (top > 0) return all;
  for (const auto& name : classes_) {
    const auto found = std::find_if(answers.begin(), answers.end(),
                                    [&](const Json& answer) { return answer.at("name").as_string() == name; });
    all.push_back(share(*found));
  }
  return all;
}

void ClassifyScore::add(const Rows& rows) {
  metrics_.add(rows.output("logits").values, {rows.field("label").values<int64_t>(), static_cast<size_t>(rows.size())},
               rows.sample_ids);
}

std::string ClassifyScore::pack() const {
  const std::vector<double> packed = metrics_.pack();
  return {reinterpret_cast<const char*>(packed.data()), packed.size() * sizeof(double)};
}

void ClassifyScore::merge(std::string_view packed) {
  std::vector<double> values(packed.size() / sizeof(double));
  std::memcpy(values.data(), packed.data(), values.size() * sizeof(double));
  metrics_.merge(Metrics::unpack(values));
}

bool ClassifyScore::is_sound() const {
  return std::isfinite(metrics_.loss());
}

Headline ClassifyScore::headline() const {
  return {"top1", metrics_.top1(), true, text("top-1 ", percent(metrics_.top1(), 2))};
}

Json ClassifyScore::figures() const {
  Json all = Json::object();
  all["loss"] = metrics_.loss();
  all["top1"] = metrics_.top1();
  all["top5"] = metrics_.top5();
  if (metrics_.nonfinite() > 0) all["nonfinite"] = metrics_.nonfinite();
  if (metrics_.loss_cut() > 0) all["loss_cut"] = metrics_.loss_cut();
  return all;
}

std::string ClassifyScore::line() const {
  const std::string top5 = has_top5(metrics_.classes()) ? text("  top-5 ", percent(metrics_.top5(), 2)) : "";
  return text(headline().text, top5, "  loss ", metrics_.loss_text());
}

std::string ClassifyScore::to_text() const {
  return text("  ", line(), "\n\n", class_table(metrics_, classes_), confused_table(metrics_, classes_));
}

}  // namespace lockstep::task
