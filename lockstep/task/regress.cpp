// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/regress.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/json_member.h"
#include "lockstep/task/kept_rows.h"

namespace lockstep::task {
namespace {

using base::Json;
using base::text;

class ValueEncoder final : public ImageEncoder {
 public:
  ValueEncoder(const spec::Data& data, std::string key) : ImageEncoder(data), key_(std::move(key)) {}

  void encode_rest(const StoredSample& sample, FieldPointers rest) override {
    if (sample.members.empty()) return blank_rest(rest);  // a prediction: nobody knows the value
    fill(rest, static_cast<float>(number_in(read_json_member(sample.members[0]), key_, "regress.value")), 1);
  }
  void draw_rest(int32_t /*label*/, base::Random random, FieldPointers rest) override {
    fill(rest, static_cast<float>(random.normal()), 1);
  }
  void blank_rest(FieldPointers rest) override { fill(rest, 0, 0); }

 private:
  static void fill(FieldPointers rest, float value, float valid) {
    put(rest[0], value);
    put(rest[1], valid);
  }
  std::string key_;
};

struct Answer {
  int64_t id = 0;
  double value = 0, predicted = 0;
};

// Sums are taken in the order of the samples, so that ranks cannot change them.
class RegressScore final : public Score {
 public:
  explicit RegressScore(int64_t worst) : keep_(static_cast<size_t>(worst)) {}

  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (*rows.field("valid").values<float>(i) == 0) continue;
      answers_.add({rows.sample_ids[static_cast<size_t>(i)], *rows.field("value").values<float>(i),
                    rows.output("value").row(i)[0]});
    }
  }
  std::string pack() const override { return answers_.pack(); }
  void merge(std::string_view packed) override { answers_.merge(packed); }
  int64_t samples() const override { return answers_.size(); }
  Headline headline() const override {
    return {"mae", mean(error), false, text("mean absolute error ", base::fixed(mean(error), 4))};
  }
  Json figures() const override {
    Json all = Json::object();
    all["loss"] = mean(square);
    all["mae"] = mean(error);
    all["r2"] = r2();
    return all;
  }
  std::string line() const override {
    return text(headline().text, "  R2 ", base::fixed(r2(), 4), "  loss ", base::fixed(mean(square), 4));
  }
  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    all["worst"] = Json::array();
    std::vector<Answer> worst = answers_.in_order();
    std::stable_sort(worst.begin(), worst.end(), [](const Answer& a, const Answer& b) { return error(a) > error(b); });
    worst.resize(std::min(worst.size(), keep_));
    for (const Answer& answer : worst) {
      Json row = Json::object();
      row["sample"] = answer.id;
      row["target"] = answer.value;
      row["predicted"] = answer.predicted;
      row["loss"] = square(answer);
      all["worst"].push_back(std::move(row));
    }
    return all;
  }

 private:
  static double error(const Answer& answer) {  // what is no number is wrong beyond measure: it sorts as that
    const double off = std::abs(answer.predicted - answer.value);
    return std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
  }
  static double square(const Answer& answer) { return error(answer) * error(answer); }
  double r2() const {  // 1 is perfect, 0 what the mean of all values would reach
    const double centre = mean([](const Answer& answer) { return answer.value; });
    const double spread = mean([&](const Answer& answer) { return std::pow(answer.value - centre, 2); });
    return spread > 0 ? 1 - mean(square) / spread : 0;
  }
  template <class Of>
  double mean(const Of& of) const {
    double sum = 0;
    for (const Answer& answer : answers_.in_order()) sum += of(answer);
    return samples() == 0 ? 0 : sum / static_cast<double>(samples());
  }

  size_t keep_;
  KeptRows<Answer> answers_;
};

class Regress final : public Task {
 public:
  explicit Regress(const spec::Job& job) : data_(job.data), key_(job.regress.value) {}

  std::vector<Field> fields() const override { return {image_field(data_), {.name = "value"}, {.name = "valid"}}; }
  std::vector<std::string> members() const override { return {"json"}; }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<ValueEncoder>(data_, key_); }
  Classes classes() const override { return Classes::none; }
  int64_t num_outputs() const override { return 1; }
  std::unique_ptr<Score> score(int64_t worst) const override { return std::make_unique<RegressScore>(worst); }
  Json report_words() const override {
    return base::parse_json(R"({"title": "Mean absolute error", "share": false, "higher_is_better": false,
                                "training": "absolute_error", "validation": "mae", "also": {}})",
                            "report words");
  }
  NetworkWords network_words() const override { return {.gives = "a number for an image"}; }
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    Json record = Json::object();
    record[key_] = static_cast<double>(rows.output("value").row(i)[0]);
    return record;
  }
  std::string line(const Json& record) const override {
    return text(key_, " ", base::fixed(record.at(key_).as_double(), 4));
  }
  std::vector<std::string> columns(int64_t /*top*/) const override { return {key_}; }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    return {base::fixed(record.at(key_).as_double(), 6)};
  }

 private:
  spec::Data data_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Task> make_regress(const spec::Job& job) {
  return std::make_unique<Regress>(job);
}

}  // namespace lockstep::task
