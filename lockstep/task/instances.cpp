// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances.h"

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/kept_rows.h"

namespace lockstep::task {
namespace {

using base::Json;
using base::text;

std::vector<Field> instance_fields(const spec::Job& job) {
  const spec::Instances& settings = job.instances;
  std::vector<Field> fields{image_field(job.data),
                            {.name = "shown", .shape = {2}},
                            {.name = "boxes", .shape = {settings.slots, 4}},
                            {.name = "labels", .element = Element::int64, .shape = {settings.slots}}};
  if (settings.masks) {
    fields.push_back({.name = "masks",
                      .element = Element::uint8,
                      .shape = {settings.slots, settings.mask_size, settings.mask_size}});
  }
  return fields;
}

// Draws synthetic samples: rectangles that fill their masks.
class ObjectEncoder final : public ImageEncoder {
 public:
  explicit ObjectEncoder(const spec::Job& job)
      : ImageEncoder(job.data),
        size_(job.data.image_size),
        classes_(std::max<int64_t>(1, job.model.classes)),
        slots_(job.instances.slots),
        fields_(instance_fields(job)) {}

  void encode_rest(const StoredSample& /*sample*/, FieldPointers /*rest*/) override {
    throw base::Error(base::Blame::user, "task instances reads no stored objects", "data.train=synthetic");
  }
  void draw_rest(int32_t /*label*/, base::Random random, FieldPointers rest) override {
    constexpr int64_t kMostObjects = 8;
    blank_rest(rest);
    auto* shown = reinterpret_cast<float*>(rest[0]);
    auto* boxes = reinterpret_cast<float*>(rest[1]);
    auto* labels = reinterpret_cast<int64_t*>(rest[2]);
    shown[0] = static_cast<float>(size_.height);
    shown[1] = static_cast<float>(size_.width);
    const int64_t count = std::min(slots_, 1 + random.below(kMostObjects));
    for (int64_t i = 0; i < count; ++i) {
      const double width = random.uniform(0.1, 0.5) * shown[1], height = random.uniform(0.1, 0.5) * shown[0];
      const double x = random.uniform(0, shown[1] - width), y = random.uniform(0, shown[0] - height);
      const double box[4] = {x, y, x + width, y + height};
      std::copy(box, box + 4, boxes + 4 * i);
      labels[i] = 1 + random.below(classes_);
      if (rest.size() > 3) {
        const int64_t bytes = fields_[4].bytes() / slots_;
        std::memset(rest[3] + i * bytes, 1, static_cast<size_t>(bytes));
      }
    }
  }
  void blank_rest(FieldPointers rest) override {
    for (size_t i = 0; i < rest.size(); ++i) std::memset(rest[i], 0, static_cast<size_t>(fields_[i + 1].bytes()));
  }

 private:
  spec::ImageSize size_;
  int64_t classes_;
  int64_t slots_;
  std::vector<Field> fields_;
};

struct Told {
  int64_t id = 0;
  int64_t detections = 0;
};

// How many detections an image has.
class DetectionCount final : public Score {
 public:
  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const auto scores = rows.output("scores").row(i);
      told_.add({rows.sample_ids[static_cast<size_t>(i)],
                 std::count_if(scores.begin(), scores.end(), [](float score) { return score > 0; })});
    }
  }
  std::string pack() const override { return told_.pack(); }
  void merge(std::string_view packed) override { told_.merge(packed); }
  int64_t samples() const override { return told_.size(); }
  Headline headline() const override {
    int64_t all = 0;
    for (const Told& told : told_.in_order()) all += told.detections;
    const double mean = samples() == 0 ? 0 : static_cast<double>(all) / static_cast<double>(samples());
    return {"detections", mean, true, text("detections ", base::fixed(mean, 1))};
  }
  Json figures() const override {
    Json all = Json::object();
    all["detections"] = headline().value;
    return all;
  }
  std::string line() const override { return headline().text; }
  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    all["worst"] = Json::array();
    return all;
  }

 private:
  KeptRows<Told> told_;
};

class Instances final : public Task {
 public:
  explicit Instances(spec::Job job) : job_(std::move(job)) {}

  std::vector<Field> fields() const override { return instance_fields(job_); }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<ObjectEncoder>(job_); }
  Classes classes() const override { return Classes::none; }
  int64_t num_outputs() const override { return job_.model.classes; }
  std::unique_ptr<Score> score(int64_t /*worst*/) const override { return std::make_unique<DetectionCount>(); }
  Json report_words() const override {
    return base::parse_json(R"({"title": "Detections", "share": false, "higher_is_better": true,
                                "training": "class_loss", "validation": "detections", "also": {}})",
                            "report words");
  }
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    Json record = Json::object();
    const auto scores = rows.output("scores").row(i);
    record["objects"] = std::count_if(scores.begin(), scores.end(), [](float score) { return score > 0; });
    return record;
  }
  std::string line(const Json& record) const override { return text("objects ", record.at("objects").as_int()); }
  std::vector<std::string> columns(int64_t /*top*/) const override { return {"objects"}; }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    return {text(record.at("objects").as_int())};
  }

 private:
  spec::Job job_;
};

}  // namespace

std::unique_ptr<Task> make_instances(const spec::Job& job) {
  return std::make_unique<Instances>(job);
}

}  // namespace lockstep::task
