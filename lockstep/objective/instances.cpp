// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/instances.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/softplus.h>

namespace lockstep::objective {
namespace {

using model::NamedTensors;

constexpr double kSquareBelow = 1.0 / 9;  // of smooth L1: errors below it count by their square

// Binary cross-entropy: -t log p - (1 - t) log (1 - p) of p = 1 / (1 + exp(-logit)).
at::Tensor binary_losses(const at::Tensor& logits, const at::Tensor& targets) {
  return at::softplus(logits) - logits * targets.detach();
}

// [images, n, 4] twice -> [images, n]
at::Tensor box_losses(const at::Tensor& deltas, const at::Tensor& targets) {
  return at::smooth_l1_loss(deltas, targets.detach(), at::Reduction::None, kSquareBelow).sum(2);
}

class Instances final : public Objective {
 public:
  explicit Instances(bool masks) : masks_(masks) {}

  std::vector<std::string> outputs() const override {
    std::vector<std::string> names{"boxes", "scores", "labels"};
    if (masks_) names.emplace_back("masks");
    return names;
  }

  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& /*fields*/, const BatchPosition&) const override {
    at::Tensor all;
    for (const at::Tensor& part : parts(instance_losses(outputs))) all = all.defined() ? all + part : part;
    return all.sum();
  }
  std::vector<std::string> figures() const override {
    std::vector<std::string> names{"objectness_loss", "anchor_box_loss", "class_loss", "box_loss"};
    if (masks_) names.emplace_back("mask_loss");
    return names;
  }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& /*fields*/) const override {
    NamedTensors still = outputs;
    for (auto& output : still) output.tensor = output.tensor.detach();
    std::vector<at::Tensor> all;
    for (const at::Tensor& part : parts(instance_losses(still))) all.push_back(part.sum());
    return all;
  }
  HostRows scored(const NamedTensors& outputs) const override {
    HostRows rows;
    for (const auto& [name, tensor] : outputs) rows.push_back({name, host_rows(tensor.flatten(1))});
    return rows;
  }

 private:
  static std::vector<at::Tensor> parts(const InstanceLosses& losses) {
    std::vector<at::Tensor> all{losses.objectness, losses.anchor_box, losses.class_, losses.box};
    if (losses.mask.defined()) all.push_back(losses.mask);
    return all;
  }

  bool masks_;
};

}  // namespace

InstanceLosses instance_losses(const NamedTensors& outputs) {
  InstanceLosses losses;
  const at::Tensor& anchors = outputs.at("anchors_valid");  // [images, samples]
  const at::Tensor num_anchors = anchors.sum(1).clamp_min(1);
  const at::Tensor& wanted = outputs.at("objectness_targets");
  losses.objectness = (binary_losses(outputs.at("objectness"), wanted) * anchors).sum(1) / num_anchors;
  const at::Tensor on_objects = wanted.detach() * anchors;
  losses.anchor_box =
      (box_losses(outputs.at("anchor_deltas"), outputs.at("anchor_targets")) * on_objects).sum(1) / num_anchors;

  const at::Tensor& labels = outputs.at("class_targets");  // [images, regions]; below 0: an empty slot
  const at::Tensor& logits = outputs.at("class_logits");   // [images, regions, classes]
  const at::Tensor num_regions = labels.ge(0).sum(1).clamp_min(1);
  const at::Tensor each = at::cross_entropy_loss(logits.flatten(0, 1), labels.flatten(), {}, at::Reduction::None,
                                                 /*ignore_index=*/-1);
  losses.class_ = each.view(labels.sizes()).sum(1) / num_regions;
  losses.box = (box_losses(outputs.at("box_deltas"), outputs.at("box_targets")) * labels.gt(0)).sum(1) / num_regions;

  if (const at::Tensor* masks = outputs.find("mask_logits")) {
    const at::Tensor& there = outputs.at("masks_valid");  // [images, masks]
    const at::Tensor mean = binary_losses(*masks, outputs.at("mask_targets")).mean({2, 3});
    losses.mask = (mean * there).sum(1) / there.sum(1).clamp_min(1);
  }
  return losses;
}

std::shared_ptr<const Objective> make_instances(const spec::Instances& settings) {
  return std::make_shared<Instances>(settings.masks);
}

}  // namespace lockstep::objective
