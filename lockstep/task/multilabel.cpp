// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/multilabel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/draw_classes.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/json_member.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::fixed;
using base::Json;
using base::percent;
using base::text;

std::string_view trimmed(std::string_view word) {
  while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
  while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
  return word;
}

// "cat|dog", "cat;dog", a list of names, a number that is a name; "" is none.
std::vector<std::string> labels_in(const Json& value) {
  std::vector<std::string> labels;
  if (value.is_array()) {
    for (const Json& item : value.items()) labels.push_back(item.as_string());
    return labels;
  }
  const std::string words = value.is_string() ? value.as_string() : value.dump(-1);
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find_first_of("|;", begin), words.size());
    if (const auto label = trimmed(std::string_view(words).substr(begin, end - begin)); !label.empty()) {
      labels.emplace_back(label);
    }
    begin = end + 1;
  }
  return labels;
}

class LabelsEncoder final : public ImageEncoder {
 public:
  LabelsEncoder(const spec::Data& data, const spec::Multilabel& how) : ImageEncoder(data), how_(how) {}

  void encode_rest(const StoredSample& sample, FieldPointers rest) override {
    blank_rest(rest);
    if (sample.members.empty()) return;  // a prediction: nobody knows the labels
    const Json document = read_json_member(sample.members[0]);
    if (const Json* labels = document.find(how_.labels)) {
      for (const auto& name : labels_in(*labels)) mark(rest[0], position_of(name));
    } else {
      for (size_t i = 0; i < how_.classes.size(); ++i) {
        if (flag_in(document, how_.classes[i])) mark(rest[0], i);
      }
    }
    put<float>(rest[1], 1);
  }
  void draw_rest(int32_t /*label*/, base::Random random, FieldPointers rest) override {
    blank_rest(rest);
    for (size_t i = 0; i < how_.classes.size(); ++i) {
      if (random.chance(0.5)) mark(rest[0], i);
    }
    put<float>(rest[1], 1);
  }
  void blank_rest(FieldPointers rest) override {
    std::memset(rest[0], 0, how_.classes.size() * sizeof(float));
    put<float>(rest[1], 0);
  }

 private:
  static void mark(std::byte* labels, size_t i) { put<float>(labels + i * sizeof(float), 1); }

  size_t position_of(const std::string& name) const {
    const auto found = std::find(how_.classes.begin(), how_.classes.end(), name);
    if (found != how_.classes.end()) return static_cast<size_t>(found - how_.classes.begin());
    throw Error(Blame::user, text("label '", name, "' is none of multilabel.classes"),
                base::did_you_mean(name, how_.classes));
  }

  bool flag_in(const Json& document, const std::string& name) const {
    const double value = number_in(document, name, "multilabel.classes");
    if (value == 0 || value == 1) return value == 1;
    throw Error(Blame::user, text("'", name, "' is ", value, " in the sample's json, 0 or 1 is expected"),
                text("write the labels as 0 and 1, or as names under '", how_.labels, "' (multilabel.labels)"));
  }

  spec::Multilabel how_;
};

struct LabelScore {
  int64_t positives = 0;
  double average_precision = 0;  // NaN without a positive
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

// Keeps every answer: average precision needs them all. A row is its sample's id, then a logit and a label a class.
class MultilabelScore final : public Score {
 public:
  MultilabelScore(spec::Multilabel how, int64_t worst)
      : how_(std::move(how)), width_(how_.classes.size()), keep_(static_cast<size_t>(worst)) {}

  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (*rows.field("valid").values<float>(i) == 0) continue;
      const auto logits = rows.output("logits").row(i);
      base::ensure(logits.size() == width_, "a logit for each class");
      append(&rows.sample_ids[static_cast<size_t>(i)], sizeof(int64_t));
      append(logits.data(), width_ * sizeof(float));
      append(rows.field("label").values<float>(i), width_ * sizeof(float));
    }
  }
  std::string pack() const override { return rows_; }
  void merge(std::string_view packed) override {
    base::ensure(packed.size() % row_bytes() == 0, "ranks hand over whole rows");
    rows_ += packed;
  }
  int64_t samples() const override { return static_cast<int64_t>(rows_.size() / row_bytes()); }

  Headline headline() const override {
    const double value = summarise().mean;
    return {"map", value, true, text("mean average precision ", percent(value, 2))};
  }
  Json figures() const override {
    const Summary all = summarise();
    Json json = Json::object();
    json["loss"] = all.loss;
    json["map"] = all.mean;
    json["f1"] = all.f1;
    return json;
  }
  std::string line() const override {
    const Summary all = summarise();
    return text("mean average precision ", percent(all.mean, 2), "  F1 ", fixed(all.f1, 3), "  loss ",
                fixed(all.loss, 4));
  }
  Json to_json() const override {
    const Summary summary = summarise();
    Json all = figures();
    all["samples"] = samples();
    all["classes"] = Json::array();
    for (size_t c = 0; c < width_; ++c) {
      const LabelScore& score = summary.classes[c];
      Json row = Json::object();
      row["name"] = how_.classes[c];
      row["samples"] = score.positives;
      row["average_precision"] = score.positives > 0 ? Json(score.average_precision) : Json();
      row["precision"] = score.precision;
      row["recall"] = score.recall;
      row["f1"] = score.f1;
      all["classes"].push_back(std::move(row));
    }
    all["worst"] = worst_json();
    return all;
  }
  std::string to_text() const override {
    const Summary summary = summarise();
    base::Table table({{"class"},
                       {"images", base::Align::right},
                       {"average precision", base::Align::right},
                       {"precision", base::Align::right},
                       {"recall", base::Align::right},
                       {"F1", base::Align::right}});
    for (size_t c = 0; c < width_; ++c) {
      const LabelScore& score = summary.classes[c];
      table.add({how_.classes[c], std::to_string(score.positives),
                 score.positives > 0 ? percent(score.average_precision) : "-", percent(score.precision),
                 percent(score.recall), fixed(score.f1, 3)});
    }
    return text("  ", line(), "\n\n", table.to_text());
  }

 private:
  struct Answer {
    int64_t id = 0;
    const char* values = nullptr;  // in rows_: logits, labels
    float logit(size_t c) const { return value(c); }
    float value(size_t i) const {
      float one = 0;
      std::memcpy(&one, values + i * sizeof(float), sizeof one);
      return one;
    }
  };
  struct Summary {
    double loss = 0, mean = 0, f1 = 0;
    std::vector<LabelScore> classes;
  };

  size_t row_bytes() const { return sizeof(int64_t) + 2 * width_ * sizeof(float); }
  void append(const void* bytes, size_t size) { rows_.append(static_cast<const char*>(bytes), size); }

  // By sample: sums come out the same whatever ranks added them.
  std::vector<Answer> in_order() const {
    std::vector<Answer> all;
    for (size_t at = 0; at < rows_.size(); at += row_bytes()) {
      Answer answer{0, rows_.data() + at + sizeof(int64_t)};
      std::memcpy(&answer.id, rows_.data() + at, sizeof answer.id);
      all.push_back(answer);
    }
    std::stable_sort(all.begin(), all.end(), [](const Answer& a, const Answer& b) { return a.id < b.id; });
    return all;
  }

  bool is_positive(const Answer& answer, size_t c) const { return answer.value(width_ + c) != 0; }
  // What is no number gives no label.
  bool is_given(const Answer& answer, size_t c) const {
    return 1 / (1 + std::exp(-static_cast<double>(answer.logit(c)))) >= how_.threshold;
  }

  // Binary cross-entropy, the mean over the classes.
  double loss_of(const Answer& answer) const {
    double sum = 0;
    for (size_t c = 0; c < width_; ++c) {
      const double z = answer.logit(c);
      sum += std::max(z, 0.0) - (is_positive(answer, c) ? z : 0) + std::log1p(std::exp(-std::abs(z)));
    }
    return sum / static_cast<double>(width_);
  }

  Summary summarise() const {
    Summary all{.classes = std::vector<LabelScore>(width_)};
    const std::vector<Answer> answers = in_order();
    for (const Answer& answer : answers) all.loss += loss_of(answer);
    if (!answers.empty()) all.loss /= static_cast<double>(answers.size());
    int64_t right = 0, given = 0, positives = 0, counted = 0;
    for (size_t c = 0; c < width_; ++c) {
      LabelScore& score = all.classes[c];
      std::vector<Ranked> ranked;
      int64_t right_here = 0, given_here = 0;
      for (const Answer& answer : answers) {
        ranked.push_back({answer.logit(c), is_positive(answer, c)});
        score.positives += is_positive(answer, c);
        given_here += is_given(answer, c);
        right_here += is_given(answer, c) && is_positive(answer, c);
      }
      score.average_precision = average_precision(std::move(ranked));
      score.precision = share_of(right_here, given_here);
      score.recall = share_of(right_here, score.positives);
      score.f1 = share_of(2 * right_here, given_here + score.positives);
      right += right_here, given += given_here, positives += score.positives;
      if (score.positives > 0) all.mean += score.average_precision, ++counted;
    }
    all.mean = counted > 0 ? all.mean / static_cast<double>(counted) : 0;
    if (!std::isfinite(all.loss)) all.mean = std::nan("");  // such a network is the best of nothing
    all.f1 = share_of(2 * right, given + positives);
    return all;
  }

  static double share_of(int64_t part, int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
  }

  Json worst_json() const {
    std::vector<std::pair<double, Answer>> all;
    for (const Answer& answer : in_order()) {
      const double loss = loss_of(answer);
      bool is_wrong = false;
      for (size_t c = 0; c < width_; ++c) is_wrong |= is_given(answer, c) != is_positive(answer, c);
      if (is_wrong) all.emplace_back(std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss, answer);
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    all.resize(std::min(all.size(), keep_));
    Json worst = Json::array();
    for (const auto& [loss, answer] : all) {
      Json row = Json::object();
      row["sample"] = answer.id;
      row["target"] = names_where([&, a = answer](size_t c) { return is_positive(a, c); });
      row["predicted"] = names_where([&, a = answer](size_t c) { return is_given(a, c); });
      row["loss"] = loss;
      worst.push_back(std::move(row));
    }
    return worst;
  }

  template <class Holds>
  std::string names_where(const Holds& holds) const {
    std::vector<std::string> names;
    for (size_t c = 0; c < width_; ++c) {
      if (holds(c)) names.push_back(how_.classes[c]);
    }
    return names.empty() ? "none" : base::join(names, ", ");
  }

  spec::Multilabel how_;
  size_t width_;
  size_t keep_;
  std::string rows_;
};

class Multilabel final : public Task {
 public:
  explicit Multilabel(const spec::Job& job) : data_(job.data), how_(job.multilabel) {
    const auto complain = [](const std::string& what, const char* fix) { throw Error(Blame::user, what, fix); };
    if (how_.classes.empty()) {
      complain("task multilabel without multilabel.classes", R"(name them: "multilabel": {"classes": ["cat", "dog"]})");
    }
    std::vector<std::string> sorted = how_.classes;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) complain(text("multilabel.classes: '", *twice, "' stands there twice"), "remove one");
  }

  std::vector<Field> fields() const override {
    return {image_field(data_), {.name = "label", .shape = {num_outputs()}}, {.name = "valid"}};
  }
  std::vector<std::string> members() const override { return {"json"}; }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<LabelsEncoder>(data_, how_); }
  Classes classes() const override { return Classes::none; }
  int64_t num_outputs() const override { return std::ssize(how_.classes); }
  std::unique_ptr<Score> score(int64_t worst) const override { return std::make_unique<MultilabelScore>(how_, worst); }
  Json report_words() const override {
    return base::parse_json(R"({"title": "Mean average precision", "share": true, "higher_is_better": true,
                                "training": "", "validation": "map", "also": {"F1": "f1"}})",
                            "report words");
  }
  NetworkWords network_words() const override {
    return {.gives = "any number of classes for an image: sigmoid of each output",
            .activation = "sigmoid",
            .threshold = how_.threshold};
  }

  // "labels": those from the threshold on; "classes": the most probable, whether or not.
  Json record(const Rows& rows, int64_t i, int64_t top) const override {
    const auto shares = rows.output("probabilities").row(i);
    std::vector<size_t> order(shares.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shares[a] > shares[b]; });
    Json labels = Json::array(), classes = Json::array();
    for (const size_t c : order) {
      if (shares[c] >= how_.threshold) labels.push_back(how_.classes[c]);
      if (static_cast<int64_t>(classes.size()) >= std::max<int64_t>(top, 1)) continue;
      Json entry = Json::object();
      entry["name"] = how_.classes[c];
      entry["probability"] = static_cast<double>(shares[c]);
      classes.push_back(std::move(entry));
    }
    Json record = Json::object();
    record["labels"] = std::move(labels);
    record["classes"] = std::move(classes);
    return record;
  }
  bool draw(const Json& record, image::Image& on) const override { return draw_classes(record, on); }
  std::string line(const Json& record) const override {
    std::vector<std::string> words;
    for (const auto& entry : record.at("classes").items()) {
      words.push_back(text(entry.at("name").as_string(), " ", percent(entry.at("probability").as_double())));
    }
    const std::string labels = joined(record, ", ");
    return text(labels.empty() ? "none" : labels, "  (", base::join(words, ", "), ")");
  }
  std::vector<std::string> columns(int64_t top) const override {
    std::vector<std::string> all{"labels"};
    if (top == 0) all.insert(all.end(), how_.classes.begin(), how_.classes.end());
    for (int64_t i = 1; i <= std::min(top, num_outputs()); ++i) {
      all.insert(all.end(), {text("label_", i), text("confidence_", i)});
    }
    return all;
  }
  std::vector<std::string> cells(const Json& record, int64_t top) const override {
    std::vector<std::string> all{joined(record, "|")};
    const auto& answers = record.at("classes").items();
    const auto share = [](const Json& answer) { return fixed(answer.at("probability").as_double(), 6); };
    if (top > 0) {
      for (const Json& answer : answers) all.insert(all.end(), {answer.at("name").as_string(), share(answer)});
      return all;
    }
    for (const auto& name : how_.classes) {
      const auto found = std::find_if(answers.begin(), answers.end(),
                                      [&](const Json& answer) { return answer.at("name").as_string() == name; });
      all.push_back(share(*found));
    }
    return all;
  }

 private:
  static std::string joined(const Json& record, const char* between) {
    std::vector<std::string> names;
    for (const auto& label : record.at("labels").items()) names.push_back(label.as_string());
    return base::join(names, between);
  }

  spec::Data data_;
  spec::Multilabel how_;
};

}  // namespace

double average_precision(std::vector<Ranked> all) {
  for (auto& one : all) {  // what is no number comes last
    if (std::isnan(one.score)) one.score = -std::numeric_limits<float>::infinity();
  }
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  const auto positives = std::count_if(all.begin(), all.end(), [](const Ranked& one) { return one.is_positive; });
  if (positives == 0) return std::nan("");
  double sum = 0;
  int64_t found = 0;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    int64_t here = 0;
    for (; end < all.size() && all[end].score == all[begin].score; ++end) here += all[end].is_positive;
    found += here;
    sum += static_cast<double>(here) * static_cast<double>(found) / static_cast<double>(end);
  }
  return sum / static_cast<double>(positives);
}

std::unique_ptr<Task> make_multilabel(const spec::Job& job) {
  return std::make_unique<Multilabel>(job);
}

}  // namespace lockstep::task
