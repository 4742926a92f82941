// SPDX-License-Identifier: Apache-2.0
// DenseNet-BC (Huang et al. 2016, arXiv 1608.06993) with torchvision's names. Each dense layer is a block that gives
// its input with its new channels behind, so the list of blocks stays a chain.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>

#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr int64_t kBottleneck = 4;  // channels between the two convolutions of a layer, in growth rates

std::array<int64_t, 4> densenet_stages(const std::string& name) {
  if (name == "densenet121") return {6, 12, 24, 16};
  if (name == "densenet161") return {6, 12, 36, 24};
  if (name == "densenet169") return {6, 12, 32, 32};
  base::ensure(name == "densenet201", "a DenseNet of the table");
  return {6, 12, 48, 32};
}

class DenseStem final : public PlainBlock {
 public:
  DenseStem(Maker& maker, int64_t width)
      : PlainBlock("stem"),
        conv0_({*this, maker, "features.conv0."},
               {.in = 3, .out = width, .kernel = 7, .stride = 2, .padding = 3, .init = ConvInit::kaiming_fan_in}),
        norm0_({*this, maker, "features.norm0."}, width) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return max_pool(*this, norm0_.rectified(conv0_(input), mode), {.kernel = 3, .stride = 2, .padding = 1});
  }

 private:
  Conv2d conv0_;
  BatchNorm2d norm0_;
};

class DenseLayer final : public PlainBlock {
 public:
  DenseLayer(const std::string& name, Maker& maker, int64_t in, int64_t growth, double dropout)
      : PlainBlock(name),
        dropout_(dropout),
        norm1_({*this, maker, name + ".norm1."}, in),
        conv1_({*this, maker, name + ".conv1."},
               {.in = in, .out = kBottleneck * growth, .init = ConvInit::kaiming_fan_in}),
        norm2_({*this, maker, name + ".norm2."}, kBottleneck * growth),
        conv2_(
            {*this, maker, name + ".conv2."},
            {.in = kBottleneck * growth, .out = growth, .kernel = 3, .padding = 1, .init = ConvInit::kaiming_fan_in}) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    at::Tensor fresh = conv1_(norm1_.rectified(input, mode));
    fresh = conv2_(norm2_.rectified(fresh, mode));
    return at::cat({input, dropout(*this, fresh, dropout_, mode)}, 1);
  }

 private:
  double dropout_;
  BatchNorm2d norm1_;
  Conv2d conv1_;
  BatchNorm2d norm2_;
  Conv2d conv2_;
};

class Transition final : public PlainBlock {
 public:
  Transition(const std::string& name, Maker& maker, int64_t in)
      : PlainBlock(name),
        norm_({*this, maker, name + ".norm."}, in),
        conv_({*this, maker, name + ".conv."}, {.in = in, .out = in / 2, .init = ConvInit::kaiming_fan_in}) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return at::avg_pool2d(conv_(norm_.rectified(input, mode)), 2, 2);
  }

 private:
  BatchNorm2d norm_;
  Conv2d conv_;
};

class DensePool final : public PlainBlock {
 public:
  DensePool(Maker& maker, int64_t channels) : PlainBlock("pool"), norm5_({*this, maker, "features.norm5."}, channels) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return global_average(norm5_.rectified(input, mode));
  }

 private:
  BatchNorm2d norm5_;
};

}  // namespace

Blocks densenet_blocks(const Request& request) {
  const std::array<int64_t, 4> stages = densenet_stages(request.model.name);
  const int64_t usual = request.model.name == "densenet161" ? 48 : 32;
  const int64_t growth = request.model.width > 0 ? request.model.width : usual;
  int64_t channels = 2 * growth;
  Blocks blocks;
  blocks.push_back(std::make_unique<DenseStem>(request.maker, channels));
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t i = 0; i < stages[stage]; ++i) {
      const std::string name = base::text("features.denseblock", stage + 1, ".denselayer", i + 1);
      blocks.push_back(std::make_unique<DenseLayer>(name, request.maker, channels, growth, request.model.dropout));
      channels += growth;
    }
    if (stage + 1 == stages.size()) break;
    blocks.push_back(
        std::make_unique<Transition>(base::text("features.transition", stage + 1), request.maker, channels));
    channels /= 2;
  }
  blocks.push_back(std::make_unique<DensePool>(request.maker, channels));
  blocks.push_back(std::make_unique<Head>(request, channels, HeadOptions{"classifier.", 0, LinearInit::zero_bias}));
  return blocks;
}

}  // namespace lockstep::model
