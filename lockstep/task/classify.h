// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/draw_classes.h"
#include "lockstep/task/metrics.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

// One of several classes a sample. Fields "image" and "label" (-1: no part in anything).
class Classify final : public Task {
 public:
  Classify(const spec::Job& job, std::vector<std::string> classes);

  std::vector<Field> fields() const override;
  std::unique_ptr<Encoder> encoder() const override;
  Classes classes() const override { return Classes::of_samples; }
  int64_t num_outputs() const override { return num_classes_; }
  std::unique_ptr<Score> score(int64_t worst) const override;
  base::Json report_words() const override;
  NetworkWords network_words() const override;
  base::Json record(const Rows& rows, int64_t i, int64_t top) const override;
  std::string line(const base::Json& record) const override;
  bool draw(const base::Json& record, image::Image& on) const override { return draw_classes(record, on); }
  std::vector<std::string> columns(int64_t top) const override;
  std::vector<std::string> cells(const base::Json& record, int64_t top) const override;

 private:
  spec::Data data_;
  int64_t num_classes_;
  std::vector<std::string> classes_;  // by label; numbers where nobody named them
};

// Output "logits", [rows, classes].
class ClassifyScore final : public Score {
 public:
  ClassifyScore(std::vector<std::string> classes, int64_t worst)
      : classes_(std::move(classes)), metrics_(static_cast<int64_t>(classes_.size()), worst) {}

  void add(const Rows& rows) override;
  std::string pack() const override;
  void merge(std::string_view packed) override;
  int64_t samples() const override { return metrics_.samples(); }
  bool is_sound() const override;
  Headline headline() const override;
  base::Json figures() const override;
  std::string line() const override;
  base::Json to_json() const override { return task::to_json(metrics_, classes_); }
  std::string to_text() const override;

  const Metrics& metrics() const { return metrics_; }

 private:
  std::vector<std::string> classes_;
  Metrics metrics_;
};

}  // namespace lockstep::task
