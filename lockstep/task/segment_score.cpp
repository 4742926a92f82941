// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/segment_score.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/kept_rows.h"
#include "lockstep/task/segment_encoder.h"

namespace lockstep::task {
namespace {

using base::Align;
using base::Json;
using base::percent;
using base::text;

double pixel_share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

struct ScoredImage {
  int64_t id = 0;
  double loss = 0;  // mean over its pixels
  double accuracy = 0;
};

class SegmentScore final : public Score {
 public:
  SegmentScore(std::vector<std::string> names, int64_t worst, RecordOf record)
      : names_(std::move(names)), record_(std::move(record)), counts_(std::ssize(names_)), worst_(worst) {}

  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (const auto scored = count(rows, i)) keep(rows, i, *scored);
    }
  }
  std::string pack() const override {
    const auto counts = std::as_bytes(counts_.all());
    return join_parts({{reinterpret_cast<const char*>(counts.data()), counts.size()}, images_.pack(), worst_.pack()});
  }
  void merge(std::string_view packed) override {
    const std::string_view bytes = next_part(packed);
    std::vector<int64_t> counts(bytes.size() / sizeof(int64_t));
    std::memcpy(counts.data(), bytes.data(), counts.size() * sizeof(int64_t));
    counts_.add(counts);
    images_.merge(next_part(packed));
    worst_.merge(next_part(packed));
  }

  int64_t samples() const override { return images_.size(); }
  Headline headline() const override {
    return {"miou", is_broken() ? std::nan("") : counts_.mean_iou(), true,
            text("mean IoU ", percent(counts_.mean_iou()))};
  }
  Json figures() const override {
    Json all = Json::object();
    all["loss"] = loss();
    all["miou"] = counts_.mean_iou();
    all["pixel_accuracy"] = counts_.accuracy();
    return all;
  }
  std::string line() const override {
    return text(headline().text, "  pixel accuracy ", percent(counts_.accuracy()), "  loss ", base::fixed(loss(), 4));
  }
  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    all["pixels"] = counts_.pixels();
    all["constant"]["pixel_accuracy"] = counts_.constant_accuracy();
    all["constant"]["miou"] = counts_.constant_mean_iou();
    Json classes = Json::array(), confusion = Json::array(), worst = Json::array();
    for (int64_t label = 0; label < counts_.labels(); ++label) {
      Json row = Json::object(), line = Json::array();
      row["name"] = names_[static_cast<size_t>(label)];
      row["pixels"] = counts_.of_label(label);
      row["accuracy"] = pixel_share(counts_.count(label, label), counts_.of_label(label));
      const auto iou = counts_.iou(label);
      row["iou"] = iou ? Json(*iou) : Json();
      for (int64_t answer = 0; answer < counts_.labels(); ++answer) line.push_back(counts_.count(label, answer));
      classes.push_back(std::move(row));
      confusion.push_back(std::move(line));
    }
    const std::vector<ScoredImage> images = images_.in_order();
    for (const auto& [key, record] : worst_.worst_first()) {
      const auto image = std::lower_bound(images.begin(), images.end(), key.second,
                                          [](const ScoredImage& one, int64_t id) { return one.id < id; });
      Json row = Json::object();
      row["sample"] = image->id;
      row["pixel_accuracy"] = image->accuracy;
      row["loss"] = finite(image->loss);
      row["record"] = record;
      worst.push_back(std::move(row));
    }
    all["classes"] = std::move(classes);
    all["confusion"] = std::move(confusion);
    all["worst"] = std::move(worst);
    return all;
  }
  std::string to_text() const override {
    base::Table table({{"class"}, {"pixels", Align::right}, {"found", Align::right}, {"IoU", Align::right}});
    for (int64_t label = 0; label < counts_.labels(); ++label) {
      const auto iou = counts_.iou(label);
      table.add({names_[static_cast<size_t>(label)], std::to_string(counts_.of_label(label)),
                 percent(pixel_share(counts_.count(label, label), counts_.of_label(label))),
                 iou ? percent(*iou) : "-"});
    }
    return text("  ", line(), "\n  one class everywhere: mean IoU ", percent(counts_.constant_mean_iou()),
                ", pixel accuracy ", percent(counts_.constant_accuracy()), "\n\n", table.to_text());
  }

 private:
  static Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }
  bool is_broken() const { return samples() > 0 && !std::isfinite(loss()); }
  double loss() const {
    double sum = 0;
    for (const ScoredImage& image : images_.in_order()) sum += image.loss;
    return images_.size() == 0 ? 0 : sum / static_cast<double>(images_.size());
  }

  // None: no pixel of it has a label.
  std::optional<ScoredImage> count(const Rows& rows, int64_t i) {
    const auto& field = rows.field("labels");
    const uint8_t* labels = field.values<uint8_t>(i);
    const int64_t size = field.field.count();
    if (std::all_of(labels, labels + size, [](uint8_t label) { return label == kNoClass; })) return std::nullopt;
    const std::span<const float> logs = rows.output("log_probabilities").row(i);
    const std::vector<uint8_t> answers = pixel_answers(rows, i, counts_.labels());
    int64_t pixels = 0, right = 0;
    double loss = 0;
    for (int64_t k = 0; k < size; ++k) {
      const uint8_t label = labels[k], answer = answers[static_cast<size_t>(k)];
      if (label == kNoClass) continue;
      ++pixels;
      right += label == answer;
      loss -= static_cast<double>(logs[static_cast<size_t>(label * size + k)]);
      counts_.add(label, answer);
    }
    return ScoredImage{rows.sample_ids[static_cast<size_t>(i)], loss / static_cast<double>(pixels),
                       pixel_share(right, pixels)};
  }

  void keep(const Rows& rows, int64_t i, const ScoredImage& scored) {
    images_.add(scored);
    if (!worst_.takes(scored.accuracy, scored.id)) return;
    worst_.add(scored.accuracy, scored.id, record_ ? record_(rows, i) : Json());
  }

  std::vector<std::string> names_;
  RecordOf record_;
  PixelCounts counts_;
  KeptRows<ScoredImage> images_;  // sums are taken in the order of the samples
  WorstRecords worst_;            // by pixel accuracy
};

}  // namespace

void PixelCounts::add(std::span<const int64_t> counts) {
  base::ensure(counts.size() == counts_.size(), "ranks count the same labels");
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
}

int64_t PixelCounts::of_label(int64_t label) const {
  int64_t sum = 0;
  for (int64_t answer = 0; answer < labels_; ++answer) sum += count(label, answer);
  return sum;
}

int64_t PixelCounts::of_answer(int64_t answer) const {
  int64_t sum = 0;
  for (int64_t label = 0; label < labels_; ++label) sum += count(label, answer);
  return sum;
}

int64_t PixelCounts::pixels() const {
  int64_t sum = 0;
  for (const int64_t count : counts_) sum += count;
  return sum;
}

double PixelCounts::accuracy() const {
  int64_t right = 0;
  for (int64_t label = 0; label < labels_; ++label) right += count(label, label);
  return pixel_share(right, pixels());
}

std::optional<double> PixelCounts::iou(int64_t label) const {
  const int64_t either = of_label(label) + of_answer(label) - count(label, label);
  if (either == 0) return std::nullopt;
  return pixel_share(count(label, label), either);
}

double PixelCounts::mean_iou() const {
  double sum = 0;
  int64_t seen = 0;
  for (int64_t label = 0; label < labels_; ++label) {
    const auto one = iou(label);
    sum += one.value_or(0);
    seen += one.has_value();
  }
  return seen == 0 ? 0 : sum / static_cast<double>(seen);
}

double PixelCounts::constant_accuracy() const {
  int64_t most = 0;
  for (int64_t label = 0; label < labels_; ++label) most = std::max(most, of_label(label));
  return pixel_share(most, pixels());
}

double PixelCounts::constant_mean_iou() const {
  int64_t seen = 0;
  for (int64_t label = 0; label < labels_; ++label) seen += of_label(label) > 0;
  return seen == 0 ? 0 : constant_accuracy() / static_cast<double>(seen);
}

std::vector<uint8_t> pixel_answers(const Rows& rows, int64_t i, int64_t labels) {
  const std::span<const float> logs = rows.output("log_probabilities").row(i);
  const size_t size = logs.size() / static_cast<size_t>(labels);
  std::vector<uint8_t> answers(size);
  std::vector<float> best(logs.begin(), logs.begin() + static_cast<std::ptrdiff_t>(size));
  for (size_t label = 1; label < static_cast<size_t>(labels); ++label) {
    const float* one = logs.data() + label * size;
    for (size_t k = 0; k < size; ++k) {
      if (one[k] > best[k]) {
        best[k] = one[k];
        answers[k] = static_cast<uint8_t>(label);
      }
    }
  }
  return answers;
}

std::unique_ptr<Score> make_segment_score(std::vector<std::string> names, int64_t worst, RecordOf record) {
  return std::make_unique<SegmentScore>(std::move(names), worst, std::move(record));
}

}  // namespace lockstep::task
