// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/metrics.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::task {
namespace {

using base::ensure;
using base::Json;

constexpr double kLossUnit = 1.0 / (1 << 24);
constexpr double kLossMost = 1e4;  // 2^63 units hold 5e7 such samples
constexpr size_t kHeader = 7;      // of pack()
constexpr size_t kPerMistake = 5;

constexpr int64_t kNone = -1;

struct Row {
  int64_t predicted = 0;  // kNone: a NaN is among them
  int64_t above = 0;      // classes with a higher logit than the target
  double loss = 0;
  double confidence = 0;
};

// Cross entropy by a shifted log-sum-exp in double, which no finite logit overflows.
Row rate_row(std::span<const float> logits, int64_t target) {
  Row row;
  if (std::any_of(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); })) {
    return {.predicted = kNone, .above = static_cast<int64_t>(logits.size()), .loss = std::nan(""), .confidence = 0};
  }
  row.predicted = std::max_element(logits.begin(), logits.end()) - logits.begin();
  const double highest = logits[static_cast<size_t>(row.predicted)];
  const double own = logits[static_cast<size_t>(target)];
  double sum = 0;
  for (size_t c = 0; c < logits.size(); ++c) {
    sum += std::exp(static_cast<double>(logits[c]) - highest);
    // Of equal logits the lower class counts as the higher one, as in argmax.
    const bool before = logits[c] == own && static_cast<int64_t>(c) < target;
    row.above += logits[c] > own || before ? 1 : 0;
  }
  row.loss = std::log(sum) + highest - own;
  row.confidence = 1 / sum;
  return row;
}

bool worse(const Mistake& a, const Mistake& b) {
  return std::tuple(-a.confidence, -a.loss, a.sample_id) < std::tuple(-b.confidence, -b.loss, b.sample_id);
}

}  // namespace

Metrics::Metrics(int64_t classes, int64_t worst)
    : classes_(classes),
      keep_(worst),
      confusion_(static_cast<size_t>(classes * classes)),
      unanswered_(static_cast<size_t>(classes)) {
  ensure(classes > 0 && worst >= 0, "metrics have classes");
}

void Metrics::add(std::span<const float> logits, std::span<const int64_t> targets,
                  std::span<const int64_t> sample_ids) {
  const auto width = static_cast<size_t>(classes_);
  ensure(logits.size() == targets.size() * width && targets.size() == sample_ids.size(), "metrics get whole rows");
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t target = targets[i];
    if (target < 0) continue;  // a sample that could not be read
    ensure(target < classes_, "a target is one of the classes");
    const Row row = rate_row(logits.subspan(i * width, width), target);
    if (row.predicted == kNone) {
      ++unanswered_[static_cast<size_t>(target)];
      ++nonfinite_;
      continue;
    }
    ++confusion_[static_cast<size_t>(target * classes_ + row.predicted)];
    if (row.above < 5) ++top5_;
    const bool finite = std::isfinite(row.loss);
    if (finite) {
      loss_ += std::llround(std::min(row.loss, kLossMost) / kLossUnit);
      loss_cut_ += row.loss > kLossMost ? 1 : 0;
    } else {
      ++nonfinite_;
    }
    const double loss = finite ? row.loss : kLossMost;
    const double confidence = finite ? row.confidence : 0;
    if (row.predicted != target) keep({sample_ids[i], target, row.predicted, loss, confidence});
  }
}

void Metrics::keep(const Mistake& mistake) {
  const auto position = std::lower_bound(worst_.begin(), worst_.end(), mistake, worse);
  if (position == worst_.end() && static_cast<int64_t>(worst_.size()) >= keep_) return;
  worst_.insert(position, mistake);
  if (static_cast<int64_t>(worst_.size()) > keep_) worst_.pop_back();
}

void Metrics::merge(const Metrics& other) {
  ensure(other.classes_ == classes_, "metrics of the same classes are merged");
  loss_ += other.loss_;
  nonfinite_ += other.nonfinite_;
  loss_cut_ += other.loss_cut_;
  top5_ += other.top5_;
  for (size_t i = 0; i < confusion_.size(); ++i) confusion_[i] += other.confusion_[i];
  for (size_t i = 0; i < unanswered_.size(); ++i) unanswered_[i] += other.unanswered_[i];
  for (const auto& mistake : other.worst_) keep(mistake);
}

std::vector<double> Metrics::pack() const {
  // A double holds integers up to 2^53; the loss sum may be larger and travels in two halves.
  const int64_t low = loss_ & 0xFFFFFFFF;
  std::vector<double> packed = {static_cast<double>(classes_),    static_cast<double>(keep_),
                                static_cast<double>(loss_ >> 32), static_cast<double>(low),
                                static_cast<double>(nonfinite_),  static_cast<double>(top5_),
                                static_cast<double>(loss_cut_)};
  packed.insert(packed.end(), confusion_.begin(), confusion_.end());
  packed.insert(packed.end(), unanswered_.begin(), unanswered_.end());
  for (size_t i = 0; i < static_cast<size_t>(keep_); ++i) {
    const Mistake mistake = i < worst_.size() ? worst_[i] : Mistake{-1, 0, 0, 0, 0};
    packed.insert(packed.end(), {static_cast<double>(mistake.sample_id), static_cast<double>(mistake.target),
                                 static_cast<double>(mistake.predicted), mistake.loss, mistake.confidence});
  }
  return packed;
}

Metrics Metrics::unpack(std::span<const double> packed) {
  ensure(packed.size() >= kHeader, "packed metrics have a header");
  Metrics metrics(static_cast<int64_t>(packed[0]), static_cast<int64_t>(packed[1]));
  const size_t cells = metrics.confusion_.size();
  const size_t targets = metrics.unanswered_.size();
  ensure(packed.size() == kHeader + cells + targets + kPerMistake * static_cast<size_t>(metrics.keep_),
         "packed metrics are complete");
  metrics.loss_ = (static_cast<int64_t>(packed[2]) << 32) + static_cast<int64_t>(packed[3]);
  metrics.nonfinite_ = static_cast<int64_t>(packed[4]);
  metrics.top5_ = static_cast<int64_t>(packed[5]);
  metrics.loss_cut_ = static_cast<int64_t>(packed[6]);
  for (size_t i = 0; i < cells; ++i) metrics.confusion_[i] = static_cast<int64_t>(packed[kHeader + i]);
  for (size_t i = 0; i < targets; ++i) metrics.unanswered_[i] = static_cast<int64_t>(packed[kHeader + cells + i]);
  for (auto rest = packed.subspan(kHeader + cells + targets); !rest.empty(); rest = rest.subspan(kPerMistake)) {
    if (rest[0] < 0) break;
    metrics.worst_.push_back({static_cast<int64_t>(rest[0]), static_cast<int64_t>(rest[1]),
                              static_cast<int64_t>(rest[2]), rest[3], rest[4]});
  }
  return metrics;
}

int64_t Metrics::samples() const {
  int64_t total = 0;
  for (const int64_t count : confusion_) total += count;
  for (const int64_t count : unanswered_) total += count;
  return total;
}

double Metrics::loss() const {
  const int64_t finite = samples() - nonfinite_;
  if (finite == 0) return nonfinite_ > 0 ? std::nan("") : 0;
  return static_cast<double>(loss_) * kLossUnit / static_cast<double>(finite);
}

std::string Metrics::loss_text() const {
  std::string mean = !std::isfinite(loss()) ? ""
                     : loss_cut_ > 0        ? base::text("at least ", base::fixed(loss(), 4))
                                            : base::fixed(loss(), 4);
  if (nonfinite_ == 0) return mean;
  const std::string share = base::text("not finite (of ", nonfinite_, nonfinite_ == 1 ? " sample)" : " samples)");
  return mean.empty() ? share : base::text(mean, ", ", share);
}

double Metrics::top1() const {
  int64_t right = 0;
  for (int64_t c = 0; c < classes_; ++c) right += confusion(c, c);
  return samples() > 0 ? static_cast<double>(right) / static_cast<double>(samples()) : 0;
}

double Metrics::top5() const {
  return samples() > 0 ? static_cast<double>(top5_) / static_cast<double>(samples()) : 0;
}

int64_t Metrics::confusion(int64_t target, int64_t predicted) const {
  return confusion_.at(static_cast<size_t>(target * classes_ + predicted));
}

ClassScore Metrics::score(int64_t label) const {
  ClassScore score;
  score.samples = unanswered_.at(static_cast<size_t>(label));
  int64_t predicted = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    score.samples += confusion(label, c);
    predicted += confusion(c, label);
  }
  const auto right = static_cast<double>(confusion(label, label));
  if (predicted > 0) score.precision = right / static_cast<double>(predicted);
  if (score.samples > 0) score.recall = right / static_cast<double>(score.samples);
  if (right > 0) score.f1 = 2 * right / static_cast<double>(predicted + score.samples);
  return score;
}

std::vector<Confusion> Metrics::most_confused(size_t most) const {
  std::vector<Confusion> all;
  for (int64_t t = 0; t < classes_; ++t) {
    for (int64_t p = 0; p < classes_; ++p) {
      if (t != p && confusion(t, p) > 0) all.push_back({t, p, confusion(t, p)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  if (all.size() > most) all.resize(most);
  return all;
}

Json to_json(const Metrics& metrics, const std::vector<std::string>& class_names) {
  ensure(static_cast<int64_t>(class_names.size()) == metrics.classes(), "every class has a name");
  const auto name = [&](int64_t label) { return Json(class_names[static_cast<size_t>(label)]); };
  Json all = Json::object();
  all["samples"] = metrics.samples();
  all["loss"] = metrics.loss();
  all["top1"] = metrics.top1();
  all["top5"] = metrics.top5();
  all["nonfinite"] = metrics.nonfinite();
  if (metrics.loss_cut() > 0) all["loss_cut"] = metrics.loss_cut();
  Json classes = Json::array();
  Json confusion = Json::array();
  for (int64_t c = 0; c < metrics.classes(); ++c) {
    const ClassScore score = metrics.score(c);
    Json row = Json::object();
    row["name"] = name(c);
    row["samples"] = score.samples;
    row["precision"] = score.precision;
    row["recall"] = score.recall;
    row["f1"] = score.f1;
    classes.push_back(std::move(row));
    Json counts = Json::array();
    for (int64_t p = 0; p < metrics.classes(); ++p) counts.push_back(metrics.confusion(c, p));
    confusion.push_back(std::move(counts));
  }
  all["classes"] = std::move(classes);
  all["confusion"] = std::move(confusion);
  all["most_confused"] = Json::array();
  for (const auto& pair : metrics.most_confused(20)) {
    Json row = Json::object();
    row["target"] = name(pair.target);
    row["predicted"] = name(pair.predicted);
    row["count"] = pair.count;
    all["most_confused"].push_back(std::move(row));
  }
  all["worst"] = Json::array();
  for (const auto& mistake : metrics.worst()) {
    Json row = Json::object();
    row["sample"] = mistake.sample_id;
    row["target"] = name(mistake.target);
    row["predicted"] = name(mistake.predicted);
    row["loss"] = mistake.loss;
    row["confidence"] = mistake.confidence;
    all["worst"].push_back(std::move(row));
  }
  return all;
}

}  // namespace lockstep::task
