// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lockstep/kernel/boxes.h"
#include "lockstep/kernel/match.h"
#include "lockstep/kernel/nms.h"
#include "lockstep/model/rcnn.h"
#include "lockstep/model/sampling.h"

namespace lockstep::model {
namespace {

constexpr size_t kMaps = 5;           // of the pyramid that anchors stand on
constexpr int64_t kFinestStride = 4;  // of its first map: a canvas is a whole number of them
constexpr double kSmallest = 1e-3;
constexpr double kProposalOverlap = 0.7;
constexpr kernel::MatchOptions kAnchorMatch{.low = 0.3, .high = 0.7, .best_of_object = true};
constexpr kernel::BoxCoder kAnchorCoder{};

// What the network says of the anchors of one map, in their order.
struct AnchorMap {
  at::Tensor logits;  // [images, anchors]
  at::Tensor deltas;  // [images, anchors, 4]
};

at::Tensor joined(const std::vector<AnchorMap>& maps, at::Tensor AnchorMap::*member) {
  std::vector<at::Tensor> all;
  all.reserve(maps.size());
  for (const AnchorMap& map : maps) all.push_back(map.*member);
  return at::cat(all, 1);
}

class Rpn final : public Block {
 public:
  Rpn(const Request& request, const RcnnShape& shape)
      : Block("rpn"),
        shape_(shape),
        conv_(site(request, "conv.0.0"), {.in = shape.channels,
                                          .out = shape.channels,
                                          .kernel = 3,
                                          .padding = 1,
                                          .bias = true,
                                          .init = ConvInit::normal_001}),
        cls_logits_(site(request, "cls_logits"), head_shape(shape, kernel::kAnchorsPerCell)),
        bbox_pred_(site(request, "bbox_pred"), head_shape(shape, 4 * kernel::kAnchorsPerCell)) {}

  Bundle run(const Bundle& input, Mode mode) override {
    const RcnnBundle bundle(input, shape_);
    std::vector<AnchorMap> maps;
    std::vector<kernel::Grid> grids;
    for (size_t level = 0; level < kMaps; ++level) {
      const at::Tensor hidden = conv_(bundle.map(level)).relu_();
      const int64_t images = hidden.size(0);
      // [images, rows, columns, anchors of a cell (, 4)], which is how maps lie in memory
      maps.push_back({cls_logits_(hidden).permute({0, 2, 3, 1}).reshape({images, -1}),
                      bbox_pred_(hidden).permute({0, 2, 3, 1}).reshape({images, -1, 4})});
      grids.push_back({hidden.size(2), hidden.size(3)});
    }
    const at::Tensor anchors = kernel::anchors(bundle.shown(), grids, kFinestStride * grids.front().height,
                                               kFinestStride * grids.front().width);
    Bundle output = bundle.up_to(kernel::Pyramid().size());
    const bool training = mode != Mode::evaluate;
    add_proposals(output, bundle, maps, anchors,
                  training ? shape_.instances.proposals : shape_.instances.evaluated_proposals);
    if (training) add_samples(output, bundle, maps, anchors);
    return output;
  }

 private:
  Site site(const Request& request, const char* layer) { return Site{*this, request.maker, "rpn.head."}.in(layer); }
  static ConvShape head_shape(const RcnnShape& shape, int64_t out) {
    return {.in = shape.channels, .out = out, .bias = true, .init = ConvInit::normal_001};
  }

  // The best of each map, moved to where the network sees an object, without repetitions.
  static void add_proposals(Bundle& output, const RcnnBundle& bundle, const std::vector<AnchorMap>& maps,
                            const at::Tensor& anchors, int64_t count) {
    const c10::AutoGradMode no_gradients(false);
    std::vector<at::Tensor> logits, deltas, from, levels;
    int64_t offset = 0;
    for (const AnchorMap& map : maps) {
      const int64_t images = map.logits.size(0), size = map.logits.size(1);
      const auto [best, indices] = at::topk(map.logits.detach(), std::min(count, size), 1);
      logits.push_back(best.to(at::kFloat));
      deltas.push_back(entries_at(map.deltas.detach(), indices).to(at::kFloat));
      from.push_back(entries_at(anchors.narrow(0, offset, size).unsqueeze(0).expand({images, size, 4}), indices));
      levels.push_back(at::empty({images, best.size(1)}, indices.options()).fill_(static_cast<int64_t>(levels.size())));
      offset += size;
    }
    const at::Tensor boxes =
        kernel::decode_boxes(at::cat(from, 1), at::cat(deltas, 1).unsqueeze(2), bundle.shown(), kAnchorCoder)
            .squeeze(2);
    const at::Tensor sides = boxes.narrow(2, 2, 2) - boxes.narrow(2, 0, 2);  // [images, n, 2]
    const at::Tensor scores = at::cat(logits, 1).sigmoid().masked_fill(sides.lt(kSmallest).any(2), -1);
    const kernel::Kept kept = kernel::nms(boxes, scores, at::cat(levels, 1), kProposalOverlap, count);
    output.push_back(entries_at(boxes, kept.indices) * kept.valid.unsqueeze(2));
    output.push_back(kept.valid);
  }

  // Anchors that are learnt from: what the network says of them (logits, deltas), what it should say, and which of the
  // slots are in use.
  void add_samples(Bundle& output, const RcnnBundle& bundle, const std::vector<AnchorMap>& maps,
                   const at::Tensor& anchors) const {
    at::Tensor indices, valid, wanted, targets;
    {
      const c10::AutoGradMode no_gradients(false);
      const at::Tensor matches =
          kernel::match(anchors.unsqueeze(0), bundle.boxes(), bundle.labels(), kAnchorMatch);  // [images, anchors]
      const at::Tensor labels = matches.ge(0).to(at::kLong) - matches.eq(kernel::kBetween).to(at::kLong);
      const int64_t slots = shape_.instances.anchor_samples;
      const Sampled sampled = sample_balanced(labels, sampling_keys(*this, labels, shape_.instances.sampler),
                                              {.slots = slots, .most_positive = slots / 2});
      indices = sampled.indices;
      valid = sampled.valid.bitwise_and(bundle.shown().select(1, 0).gt(0).unsqueeze(1)).to(at::kFloat);
      wanted = entries_at(labels, indices).to(at::kFloat);
      const at::Tensor objects = entries_at(bundle.boxes(), entries_at(matches, indices).clamp_min(0));
      targets =
          kernel::encode_boxes(entries_at(anchors.unsqueeze(0).expand({labels.size(0), anchors.size(0), 4}), indices),
                               objects, kAnchorCoder);
    }
    output.push_back(entries_at(joined(maps, &AnchorMap::logits), indices).to(at::kFloat));
    output.push_back(wanted);
    output.push_back(valid);
    output.push_back(entries_at(joined(maps, &AnchorMap::deltas), indices).to(at::kFloat));
    output.push_back(targets);
  }

  RcnnShape shape_;
  Conv2d conv_, cls_logits_, bbox_pred_;
};

}  // namespace

at::Tensor entries_at(const at::Tensor& values, const at::Tensor& indices) {
  if (values.dim() == 2) return values.gather(1, indices);
  return values.gather(1, indices.unsqueeze(2).expand({-1, -1, values.size(2)}));
}

std::unique_ptr<Block> make_rpn(const Request& request, const RcnnShape& shape) {
  return std::make_unique<Rpn>(request, shape);
}

}  // namespace lockstep::model
