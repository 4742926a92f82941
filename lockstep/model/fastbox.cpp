// SPDX-License-Identifier: Apache-2.0
// FastBox, the detector of MultiNet (Teichmann et al. 2016, arXiv 1612.07695), as KittiBox has it: a classifier's
// trunk, one box for each cell of 32 x 32 pixels, and a second look at finer features inside that box.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"
#include "lockstep/model/bilinear.h"

namespace lockstep::model {
namespace {

constexpr int64_t kCell = 32;                   // pixels of the image
constexpr int64_t kEarly = 8;                   // pixels of the image to one of the finer map
constexpr int64_t kEarlyChannels = 256;         // of it that are looked at: the first
constexpr int64_t kInner = 500, kRezoom = 128;  // hidden widths
constexpr int64_t kLooks = 3;                   // points of the second look in each direction,
constexpr double kLookDistance = 0.25;          // this share of the box apart
constexpr double kFastBoxDropout = 0.5;
constexpr double kDeepScale = 0.1, kEarlyScale = 1e-3;  // of features on their way into a product
constexpr double kBoxScale = 50, kConfidenceScale = 50, kDeltaScale = 5;

// Sends the finer map along to the head. The trunk goes on from an alias of it: so the gradients of the next block are
// added up before the head's joins them, whether that block is recomputed as a whole or not.
class KeepEarly final : public Block {
 public:
  KeepEarly() : Block("early") {}
  Bundle run(const Bundle& input, Mode /*mode*/) override { return {input[0].alias(), input[0]}; }
};

class FastBoxHead final : public Block {
 public:
  FastBoxHead(const Request& request, int64_t deep, int64_t early)
      : Block("head"),
        dropout_(request.model.dropout > 0 ? request.model.dropout : kFastBoxDropout),
        early_(std::min(early, kEarlyChannels)),
        inner_(weight(request.maker, "inner", kInner, deep)),
        box_(weight(request.maker, "box", 4, kInner)),
        confidence_(weight(request.maker, "confidence", request.model.classes, kInner)),
        rezoom_(weight(request.maker, "rezoom", kRezoom, kInner + kLooks * kLooks * early_)),
        confidence2_(weight(request.maker, "confidence2", request.model.classes, kRezoom)),
        delta_(weight(request.maker, "delta", 4, kRezoom)) {
    for (const Named& parameter : parameters) classifier.push_back(parameter.name);
  }

  // Of every cell, row by row: logits; the box as x and y of its centre from the cell's, width and height, in pixels of
  // the image; both a second time, the box as what is to be added to the first. Floats, [batch, cells, 2 or 4].
  Bundle run(const Bundle& input, Mode mode) override {
    const at::Tensor& deep = input[0];  // [batch, channels, rows, columns]
    const int64_t batch = deep.size(0), rows = deep.size(2), columns = deep.size(3);
    const at::Tensor cells = deep.permute({0, 2, 3, 1}).reshape({batch * rows * columns, deep.size(1)});
    const auto outputs = [&](const at::Tensor& values) {
      return values.to(at::kFloat).view({batch, rows * columns, values.size(1)});
    };
    const at::Tensor hidden = dropout(*this, at::linear(cells * kDeepScale, inner_()), dropout_, mode);
    const at::Tensor box = outputs(at::linear(hidden, box_())) * kBoxScale;
    const at::Tensor confidence = outputs(at::linear(hidden, confidence_()));
    const at::Tensor seen = sample_bilinear(input[1].narrow(1, 0, early_), points(box, rows, columns));
    const at::Tensor look =
        dropout(*this, seen.view({batch * rows * columns, kLooks * kLooks * early_}), dropout_, mode) * kEarlyScale;
    const at::Tensor again = at::linear(at::cat({hidden, look}, 1), rezoom_()).relu_();
    const at::Tensor second = dropout(*this, again, dropout_, mode);
    return {confidence, box, outputs(at::linear(second, confidence2_())) * kConfidenceScale,
            outputs(at::linear(second, delta_())) * kDeltaScale};
  }

 private:
  Parameter weight(Maker& maker, const char* name, int64_t out, int64_t in) {
    return {Site{*this, maker, base::text("decoder.", name, ".")}, "weight", {out, in}, Fill::uniform(0.1)};
  }

  // Where the second look falls, in pixels of the finer map: [batch, cells * 9, 2], columns of the box first.
  static at::Tensor points(const at::Tensor& box, int64_t rows, int64_t columns) {
    const int64_t batch = box.size(0), cells = box.size(1);
    const auto centres = [&](int64_t count) {
      return at::arange(count, box.options().requires_grad(false)).add(0.5).mul(kCell);
    };
    const at::Tensor x = centres(columns).view({1, columns}).expand({rows, columns}).reshape({1, cells, 1});
    const at::Tensor y = centres(rows).view({rows, 1}).expand({rows, columns}).reshape({1, cells, 1});
    const at::Tensor steps =
        at::arange(kLooks, box.options().requires_grad(false)).sub(kLooks / 2).mul(kLookDistance);  // [3]
    const auto part = [&](int64_t i) { return box.select(2, i).unsqueeze(2); };                     // [batch, cells, 1]
    const at::Tensor across = part(0) + x + steps * part(2);                                        // [batch, cells, 3]
    const at::Tensor down = part(1) + y + steps * part(3);
    const at::Tensor grid = at::stack({across.unsqueeze(3).expand({batch, cells, kLooks, kLooks}),
                                       down.unsqueeze(2).expand({batch, cells, kLooks, kLooks})},
                                      4);
    return grid.view({batch, cells * kLooks * kLooks, 2}) / kEarly;
  }

  double dropout_;
  int64_t early_;
  Parameter inner_, box_, confidence_, rezoom_, confidence2_, delta_;
};

Trunk trunk_of(const Request& request) {
  const std::string name = request.model.name.substr(std::string("fastbox_").size());
  if (name == "vgg16") return vgg16_trunk(request);
  if (name != "googlenet") return resnet_trunk(request, name);
  spec::Model model = request.model;
  model.auxiliary_heads = false;
  return googlenet_trunk({model, request.image_size, request.maker});
}

}  // namespace

Blocks fastbox_blocks(const Request& request) {
  const spec::ImageSize& size = request.image_size;
  if (size.height % kCell != 0 || size.width % kCell != 0) {
    throw base::Error(base::Blame::user,
                      base::text("data.image_size: ", spec::to_text(size), " is no multiple of ", kCell,
                                 ", the cell of ", request.model.name),
                      "for example [384, 1248]");
  }
  Trunk trunk = trunk_of(request);
  const Trunk::Map early = trunk.map_of(kEarly), deep = trunk.map_of(kCell);
  Blocks blocks;
  for (auto& block : trunk.blocks) {
    const bool is_early = block->name() == early.block;
    blocks.push_back(std::move(block));
    if (is_early) blocks.push_back(std::make_unique<KeepEarly>());
  }
  blocks.push_back(std::make_unique<FastBoxHead>(request, deep.channels, early.channels));
  return blocks;
}

}  // namespace lockstep::model
