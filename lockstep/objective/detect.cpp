// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/detect.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

namespace lockstep::objective {
namespace {

using model::NamedTensors;

constexpr int64_t kCell = 32;            // pixels
constexpr int64_t kMostBoxes = 100;      // of an image
constexpr float kLeastScore = 1e-3F;     // KittiBox's: below it a box is not looked at
constexpr double kNear = 0.2 * 0.2;      // square of how far off, in sizes of the object, a box is still one of it
constexpr double kMostSquare = 10 * 10;  // of one number of the corrected box, in pixels

struct Found {
  float score = 0;
  float left = 0, top = 0, right = 0, bottom = 0;

  float area() const { return (right - left) * (bottom - top); }
  float overlap(const Found& other) const {  // intersection over union
    const float width = std::min(right, other.right) - std::max(left, other.left);
    const float height = std::min(bottom, other.bottom) - std::max(top, other.top);
    if (width <= 0 || height <= 0) return 0;
    return width * height / (area() + other.area() - width * height);
  }
};

// -log of the probability of `label` (0 or 1): [rows, cells]
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& label) {
  const at::Tensor shares = at::log_softmax(logits.to(at::kFloat), 2);  // [rows, cells, 2]
  return (shares.select(2, 1) * label + shares.select(2, 0) * label.neg().add(1)).neg();
}

class Detect final : public Objective {
 public:
  explicit Detect(const spec::Job& job) : how_(job.detect), columns_(job.data.image_size.width / kCell) {}

  std::vector<std::string> outputs() const override { return {"confidence", "box", "confidence2", "delta"}; }
  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& fields, const BatchPosition&) const override {
    const auto parts = losses(outputs, fields);
    return parts[0] + parts[1] + parts[2] + parts[3];
  }
  std::vector<std::string> figures() const override {
    return {"confidence_loss", "box_loss", "confidence2_loss", "delta_loss"};
  }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& fields) const override {
    const c10::AutoGradMode no_gradients(false);
    return losses(outputs, fields);
  }

  HostRows scored(const NamedTensors& outputs) const override {
    const at::Tensor shares = host_rows(at::softmax(outputs.at("confidence2"), 2).select(2, 1));  // [rows, cells]
    const at::Tensor places = host_rows(outputs.at("box") + outputs.at("delta"));                 // [rows, cells, 4]
    const int64_t rows = shares.size(0), cells = shares.size(1);
    const at::Tensor boxes = at::zeros({rows, kMostBoxes * 4}), scores = at::zeros({rows, kMostBoxes}),
                     labels = at::zeros({rows, kMostBoxes});
    for (int64_t row = 0; row < rows; ++row) {
      const auto found =
          surest(shares.const_data_ptr<float>() + row * cells, places.const_data_ptr<float>() + row * cells * 4, cells);
      auto* box = boxes.data_ptr<float>() + row * kMostBoxes * 4;
      for (size_t i = 0; i < found.size(); ++i) {
        const auto at = row * kMostBoxes + static_cast<int64_t>(i);
        scores.data_ptr<float>()[at] = found[i].score;
        labels.data_ptr<float>()[at] = 1;
        for (const float edge : {found[i].left, found[i].top, found[i].right, found[i].bottom}) *box++ = edge;
      }
    }
    return {{"boxes", boxes}, {"scores", scores}, {"labels", labels}};
  }

 private:
  // Sums over the rows: confidence, box, second confidence, corrected box.
  std::vector<at::Tensor> losses(const NamedTensors& outputs, const NamedTensors& fields) const {
    const at::Tensor& object = fields.at("object");  // [rows, cells]
    const at::Tensor& mask = fields.at("mask");
    const at::Tensor& truth = fields.at("box");  // [rows, cells, 4]
    const at::Tensor& box = outputs.at("box");
    // The second confidence is asked whether the first box, as it came out, is near the object.
    const at::Tensor off = (truth.narrow(2, 0, 2) - box.detach().narrow(2, 0, 2)) / truth.narrow(2, 2, 2).clamp_min(1);
    const at::Tensor near = off.square().sum(2).lt(kNear).to(at::kFloat) * object;
    const at::Tensor corrected = (truth - (box + outputs.at("delta"))).square().clamp_max(kMostSquare);
    const auto cells = static_cast<double>(object.size(1));
    const auto mean = [&](const at::Tensor& each, double weight) { return each.sum() * (weight / cells); };
    return {mean(mask * cross_entropy(outputs.at("confidence"), object), 1),
            mean(object * (truth - box).abs().sum(2), how_.box_weight),
            mean(mask * cross_entropy(outputs.at("confidence2"), near), how_.box_weight),
            mean(object * corrected.sum(2), how_.box_weight * how_.delta_weight)};
  }

  // Greedy suppression: the surest box, then those that overlap none that is taken.
  std::vector<Found> surest(const float* scores, const float* boxes, int64_t cells) const {
    std::vector<Found> all;
    for (int64_t cell = 0; cell < cells; ++cell, boxes += 4) {
      const int64_t row = cell / columns_;
      const float x = boxes[0] + (static_cast<float>(cell % columns_) + 0.5F) * kCell;
      const float y = boxes[1] + (static_cast<float>(row) + 0.5F) * kCell;
      const float width = boxes[2], height = boxes[3];
      const bool is_box = scores[cell] > kLeastScore && std::isfinite(x) && std::isfinite(y) && width > 0 &&
                          height > 0 && std::isfinite(width * height);
      if (is_box) all.push_back({scores[cell], x - width / 2, y - height / 2, x + width / 2, y + height / 2});
    }
    std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
    std::vector<Found> taken;
    for (const Found& one : all) {
      const bool is_new = std::none_of(taken.begin(), taken.end(), [&](const Found& other) {
        return one.overlap(other) > static_cast<float>(how_.nms_iou);
      });
      if (is_new) taken.push_back(one);
      if (static_cast<int64_t>(taken.size()) == kMostBoxes) break;
    }
    return taken;
  }

  spec::Detect how_;
  int64_t columns_;
};

}  // namespace

std::shared_ptr<const Objective> make_detect(const spec::Job& job) {
  return std::make_shared<Detect>(job);
}

}  // namespace lockstep::objective
