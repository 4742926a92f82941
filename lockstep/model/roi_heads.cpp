// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lockstep/base/text.h"
#include "lockstep/kernel/boxes.h"
#include "lockstep/kernel/mask_targets.h"
#include "lockstep/kernel/match.h"
#include "lockstep/kernel/nms.h"
#include "lockstep/model/rcnn.h"
#include "lockstep/model/sampling.h"

namespace lockstep::model {
namespace {

constexpr kernel::MatchOptions kRegionMatch{.low = 0.5, .high = 0.5};
constexpr kernel::BoxCoder kRegionCoder{.position = 10, .size = 5};
constexpr kernel::RoiOptions kBoxRegions{.size = 7, .sampling = 2};
constexpr kernel::RoiOptions kMaskRegions{.size = 14, .sampling = 2};
constexpr int64_t kMaskSide = 28;
constexpr double kSmallestDetection = 1e-2;
constexpr int64_t kMostCandidates =
    10000;  // of an image that suppression looks at, the best; scores above 0.05 are few

// What the region blocks hand to each other behind the proposals' entries: regions [images, n, 4]; labels int64
// [images, n], of regions that are learnt from (0: background, below: an empty slot), else 0 or below; their objects'
// slots, int64; and what the boxes' head sees in them.
struct Regions {
  at::Tensor boxes, labels, matches, features;
};

class BoxHead final : public Block {
 public:
  BoxHead(const Request& request, const RcnnShape& shape)
      : Block("box_head"),
        shape_(shape),
        fc6_(site(request, "fc6"), shape.channels * kBoxRegions.size * kBoxRegions.size, shape.hidden),
        fc7_(site(request, "fc7"), shape.hidden, shape.hidden) {}

  Bundle run(const Bundle& input, Mode mode) override {
    const RcnnBundle bundle(input, shape_);
    const Regions regions = mode == Mode::evaluate ? proposed(bundle) : chosen(bundle);
    const at::Tensor seen = kernel::roi_align(bundle.pyramid(), regions.boxes, kBoxRegions);
    Bundle output = bundle.up_to(kernel::Pyramid().size());
    output.insert(output.end(),
                  {regions.boxes, regions.labels, regions.matches, fc7_(fc6_(seen.flatten(1)).relu_()).relu_()});
    const Bundle anchors = bundle.all_added(2);
    output.insert(output.end(), anchors.begin(), anchors.end());
    return output;
  }

 private:
  Site site(const Request& request, const char* layer) {
    return Site{*this, request.maker, "roi_heads.box_head."}.in(layer);
  }

  static Regions proposed(const RcnnBundle& bundle) {
    const at::Tensor labels = bundle.added(1).to(at::kLong) - 1;  // 0, or -1 in an empty slot
    return {bundle.added(0), labels, labels, {}};
  }

  // Among the proposals and the objects themselves.
  Regions chosen(const RcnnBundle& bundle) const {
    const c10::AutoGradMode no_gradients(false);
    const at::Tensor boxes = at::cat({bundle.added(0).detach(), bundle.boxes()}, 1);
    const at::Tensor there = at::cat({bundle.added(1), bundle.labels().gt(0)}, 1);
    const at::Tensor matches = kernel::match(boxes, bundle.boxes(), bundle.labels(), kRegionMatch);
    const at::Tensor labels =
        (entries_at(bundle.labels(), matches.clamp_min(0)) * matches.ge(0)).masked_fill(there.bitwise_not(), -1);
    const Sampled sampled =
        sample_balanced(labels, sampling_keys(*this, labels, shape_.instances.sampler),
                        {.slots = shape_.instances.roi_slots, .most_positive = shape_.instances.mask_slots()});
    return {entries_at(boxes, sampled.indices) * sampled.valid.unsqueeze(2),
            entries_at(labels, sampled.indices).masked_fill(sampled.valid.bitwise_not(), -1),
            entries_at(matches, sampled.indices),
            {}};
  }

  RcnnShape shape_;
  Linear fc6_, fc7_;
};

// 28 x 28 logits for a region, of one class. The transposed convolution's stride is its kernel's size: every pixel of
// the 14 x 14 before it becomes 2 x 2 by a product of its own, and only the class that is asked for is computed.
class MaskBranch {
 public:
  MaskBranch(const Site& site, const RcnnShape& shape)
      : channels_(shape.channels),
        head_(head_of(site, shape.channels)),
        up_weight_(site.in("mask_predictor.conv5_mask"), "weight", {shape.channels, shape.channels, 2, 2},
                   Fill::normal(std::sqrt(2 / (4 * static_cast<double>(shape.channels))))),
        up_bias_(site.in("mask_predictor.conv5_mask"), "bias", {shape.channels},
                 Fill::uniform(1 / std::sqrt(4 * static_cast<double>(shape.channels)))),
        weight_(site.in("mask_predictor.mask_fcn_logits"), "weight", {shape.classes, shape.channels, 1, 1},
                Fill::normal(std::sqrt(2 / static_cast<double>(shape.classes)))),
        bias_(site.in("mask_predictor.mask_fcn_logits"), "bias", {shape.classes},
              Fill::uniform(1 / std::sqrt(static_cast<double>(shape.channels)))) {
    const std::string prefix = site.prefix + "mask_predictor.mask_fcn_logits.";
    for (const char* name : {"weight", "bias"}) site.block.classifier.push_back(prefix + name);
  }

  // Regions [images, n, 4], classes int64 [images, n] of at least 0: [images, n, 28, 28], in fp32.
  at::Tensor operator()(const kernel::Pyramid& maps, const at::Tensor& regions, const at::Tensor& classes) const {
    at::Tensor value = kernel::roi_align(maps, regions, kMaskRegions);
    for (const Conv2d& layer : head_) value = layer(value).relu_();
    const int64_t count = value.size(0), half = kMaskSide / 2;
    const at::Tensor pixels = value.permute({0, 2, 3, 1}).reshape({count * half * half, channels_});
    // [in, out, 2, 2] -> [2 * 2 * out, in]
    const at::Tensor up = up_weight_().permute({2, 3, 1, 0}).reshape({4 * channels_, channels_});
    const at::Tensor up_bias = up_bias_().to(up.scalar_type()).expand({4, channels_}).reshape({4 * channels_});
    const at::Tensor grown = at::linear(pixels, up, up_bias).relu_().view({count, half * half * 4, channels_});
    // A product with ones and zeros, and not a choice of rows: its gradient has one order of sums on every device.
    const at::Tensor is_class = classes.reshape({count, 1})
                                    .eq(at::arange(weight_().size(0), classes.options()))
                                    .to(weight_().scalar_type());  // [count, classes]
    // By this way back its gradient lies as the weight does, which the reducer expects.
    const at::Tensor rows = weight_().permute({0, 2, 3, 1}).reshape({weight_().size(0), channels_});
    const at::Tensor weight = at::matmul(is_class, rows);  // [count, channels]
    const at::Tensor bias = at::matmul(is_class, bias_().to(weight_().scalar_type()).unsqueeze(1));  // [count, 1]
    const at::Tensor logits = at::bmm(grown, weight.unsqueeze(2)).squeeze(2) + bias;  // [count, half * half * 4]
    return logits.to(at::kFloat)
        .view({count, half, half, 2, 2})
        .permute({0, 1, 3, 2, 4})
        .reshape({regions.size(0), regions.size(1), kMaskSide, kMaskSide});
  }

 private:
  static std::vector<Conv2d> head_of(const Site& site, int64_t channels) {
    std::vector<Conv2d> layers;
    for (int64_t i = 0; i < 4; ++i) {
      const ConvShape shape{.in = channels, .out = channels, .kernel = 3, .padding = 1, .bias = true};
      layers.emplace_back(site.in(base::text("mask_head.", i, ".0")), shape);
    }
    return layers;
  }

  int64_t channels_;
  std::vector<Conv2d> head_;
  Parameter up_weight_, up_bias_, weight_, bias_;
};

class RcnnHead final : public Block {
 public:
  RcnnHead(const Request& request, const RcnnShape& shape)
      : Block("head"),
        shape_(shape),
        cls_score_(make_classifier(site(request).in("box_predictor.cls_score"), shape.hidden, shape.classes)),
        bbox_pred_(make_classifier(site(request).in("box_predictor.bbox_pred"), shape.hidden, 4 * shape.classes)) {
    if (shape.masks) masks_.emplace(site(request), shape);
  }

  Bundle run(const Bundle& input, Mode mode) override {
    const RcnnBundle bundle(input, shape_);
    const Regions regions{bundle.added(0), bundle.added(1), bundle.added(2), bundle.added(3)};
    const int64_t images = regions.boxes.size(0), count = regions.boxes.size(1);
    const at::Tensor logits = cls_score_(regions.features).to(at::kFloat).view({images, count, shape_.classes});
    const at::Tensor deltas = bbox_pred_(regions.features).to(at::kFloat).view({images, count, shape_.classes, 4});
    if (mode == Mode::evaluate) return detect(bundle, regions, logits, deltas);
    Bundle output = bundle.all_added(4);
    add_boxes(output, bundle, regions, logits, deltas);
    if (masks_) add_masks(output, bundle, regions);
    return output;
  }

 private:
  Site site(const Request& request) { return {*this, request.maker, "roi_heads."}; }

  static void add_boxes(Bundle& output, const RcnnBundle& bundle, const Regions& regions, const at::Tensor& logits,
                        const at::Tensor& deltas) {
    const at::Tensor its_class = regions.labels.clamp_min(0).unsqueeze(2).unsqueeze(3);  // [images, regions, 1, 1]
    const at::Tensor objects = entries_at(bundle.boxes(), regions.matches.clamp_min(0));
    output.push_back(logits);
    output.push_back(regions.labels);
    output.push_back(deltas.gather(2, its_class.expand({-1, -1, 1, 4})).squeeze(2));
    output.push_back(kernel::encode_boxes(regions.boxes, objects, kRegionCoder));
  }

  // The regions on objects are the first.
  void add_masks(Bundle& output, const RcnnBundle& bundle, const Regions& regions) const {
    const int64_t slots = std::min(shape_.instances.mask_slots(), regions.boxes.size(1));
    const auto first = [&](const at::Tensor& of) { return of.narrow(1, 0, slots); };
    const at::Tensor classes = first(regions.labels);
    const at::Tensor matches = first(regions.matches).masked_fill(classes.le(0), -1);
    const kernel::MaskTargets targets = kernel::mask_targets({bundle.masks(), bundle.boxes(), bundle.shown()}, matches,
                                                             first(regions.boxes), kMaskSide);
    output.push_back((*masks_)(bundle.pyramid(), first(regions.boxes), classes.clamp_min(0)));
    output.push_back(targets.values);
    output.push_back(targets.present.to(at::kFloat));
  }

  Bundle detect(const RcnnBundle& bundle, const Regions& regions, const at::Tensor& logits,
                const at::Tensor& deltas) const {
    const spec::Instances& settings = shape_.instances;
    const int64_t images = logits.size(0), objects = shape_.classes - 1;
    const at::Tensor boxes = kernel::decode_boxes(regions.boxes, deltas.narrow(2, 1, objects), bundle.shown(),
                                                  kRegionCoder);       // [images, regions, objects, 4]
    at::Tensor scores = at::softmax(logits, 2).narrow(2, 1, objects);  // [images, regions, objects]
    const at::Tensor sides = boxes.narrow(3, 2, 2) - boxes.narrow(3, 0, 2);
    const at::Tensor none = scores.le(settings.score_threshold)
                                .bitwise_or(sides.lt(kSmallestDetection).any(3))
                                .bitwise_or(regions.labels.lt(0).unsqueeze(2));
    scores = scores.masked_fill(none, -1).reshape({images, -1});  // [images, regions * objects]
    at::Tensor candidates = boxes.reshape({images, -1, 4});
    at::Tensor labels = at::arange(1, shape_.classes, regions.labels.options())
                            .expand({images, regions.boxes.size(1), objects})
                            .reshape({images, -1});
    if (scores.size(1) > kMostCandidates) {
      const auto [best, indices] = at::topk(scores, kMostCandidates, 1);
      scores = best;
      candidates = entries_at(candidates, indices);
      labels = entries_at(labels, indices);
    }
    const kernel::Kept kept = kernel::nms(candidates, scores, labels, settings.nms_iou, settings.detections);
    const at::Tensor found = entries_at(candidates, kept.indices) * kept.valid.unsqueeze(2);
    const at::Tensor classes = entries_at(labels, kept.indices) * kept.valid;
    Bundle output{found, entries_at(scores, kept.indices) * kept.valid, classes};
    if (masks_) output.push_back((*masks_)(bundle.pyramid(), found, classes).sigmoid());
    return output;
  }

  RcnnShape shape_;
  Linear cls_score_, bbox_pred_;
  std::optional<MaskBranch> masks_;
};

}  // namespace

std::unique_ptr<Block> make_box_head(const Request& request, const RcnnShape& shape) {
  return std::make_unique<BoxHead>(request, shape);
}

std::unique_ptr<Block> make_rcnn_head(const Request& request, const RcnnShape& shape) {
  return std::make_unique<RcnnHead>(request, shape);
}

}  // namespace lockstep::model
