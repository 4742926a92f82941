// SPDX-License-Identifier: Apache-2.0
// ResNet (He et al. 2015, arXiv 1512.03385) as torchvision has it: stride in the 3x3 convolution ("v1.5").
#include <ATen/ops/max_pool2d.h>

#include <array>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

struct ResnetShape {
  std::array<int64_t, 4> stages;
  int64_t expansion;  // 1: two 3x3 convolutions; 4: the bottleneck
};

ResnetShape resnet_shape(const std::string& name) {
  if (name == "resnet18") return {{2, 2, 2, 2}, 1};
  if (name == "resnet34") return {{3, 4, 6, 3}, 1};
  if (name == "resnet50") return {{3, 4, 6, 3}, 4};
  if (name == "resnet101") return {{3, 4, 23, 3}, 4};
  base::ensure(name == "resnet152", "a ResNet of the table");
  return {{3, 8, 36, 3}, 4};
}

class ResnetStem final : public Block {
 public:
  ResnetStem(Maker& maker, int64_t width)
      : Block("stem"),
        conv1_({*this, maker, "conv1."}, {.in = 3, .out = width, .kernel = 7, .stride = 2, .padding = 3}),
        bn1_({*this, maker, "bn1."}, width) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return at::max_pool2d(bn1_(conv1_(input), mode).relu_(), 3, 2, 1);
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
};

struct Residual {  // sizes of one residual block
  int64_t in, planes, stride, expansion;
  int64_t out() const { return planes * expansion; }
  bool projects() const { return stride != 1 || in != out(); }
};

class Shortcut {
 public:
  Shortcut(const Site& site, const Residual& size)
      : conv_(site.in("0"), {.in = size.in, .out = size.out(), .stride = size.stride}),
        norm_(site.in("1"), size.out()) {}
  at::Tensor operator()(const at::Tensor& input, Mode mode) const { return norm_(conv_(input), mode); }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

std::optional<Shortcut> shortcut(const Site& site, const Residual& size) {
  if (!size.projects()) return std::nullopt;
  return Shortcut(site, size);
}

class BasicBlock final : public Block {
 public:
  BasicBlock(const std::string& name, Maker& maker, const Residual& size)
      : Block(name),
        conv1_({*this, maker, name + ".conv1."},
               {.in = size.in, .out = size.planes, .kernel = 3, .stride = size.stride, .padding = 1}),
        bn1_({*this, maker, name + ".bn1."}, size.planes),
        conv2_({*this, maker, name + ".conv2."}, {.in = size.planes, .out = size.planes, .kernel = 3, .padding = 1}),
        bn2_({*this, maker, name + ".bn2."}, size.planes),
        downsample_(shortcut({*this, maker, name + ".downsample."}, size)) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    at::Tensor value = bn1_(conv1_(input), mode).relu_();
    value = bn2_(conv2_(value), mode);
    return value.add_(downsample_ ? (*downsample_)(input, mode) : input).relu_();
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  std::optional<Shortcut> downsample_;
};

class Bottleneck final : public Block {
 public:
  Bottleneck(const std::string& name, Maker& maker, const Residual& size)
      : Block(name),
        conv1_({*this, maker, name + ".conv1."}, {.in = size.in, .out = size.planes}),
        bn1_({*this, maker, name + ".bn1."}, size.planes),
        conv2_({*this, maker, name + ".conv2."},
               {.in = size.planes, .out = size.planes, .kernel = 3, .stride = size.stride, .padding = 1}),
        bn2_({*this, maker, name + ".bn2."}, size.planes),
        conv3_({*this, maker, name + ".conv3."}, {.in = size.planes, .out = size.out()}),
        bn3_({*this, maker, name + ".bn3."}, size.out()),
        downsample_(shortcut({*this, maker, name + ".downsample."}, size)) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    at::Tensor value = bn1_(conv1_(input), mode).relu_();
    value = bn2_(conv2_(value), mode).relu_();
    value = bn3_(conv3_(value), mode);
    return value.add_(downsample_ ? (*downsample_)(input, mode) : input).relu_();
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  std::optional<Shortcut> downsample_;
};

std::unique_ptr<Block> residual_block(const std::string& name, Maker& maker, const Residual& size) {
  if (size.expansion == 1) return std::make_unique<BasicBlock>(name, maker, size);
  return std::make_unique<Bottleneck>(name, maker, size);
}

}  // namespace

Blocks resnet_blocks(const Request& request) {
  const ResnetShape shape = resnet_shape(request.model.name);
  const int64_t width = request.model.width > 0 ? request.model.width : 64;
  Blocks blocks;
  blocks.push_back(std::make_unique<ResnetStem>(request.maker, width));
  int64_t channels = width;
  for (size_t stage = 0; stage < shape.stages.size(); ++stage) {
    for (int64_t i = 0; i < shape.stages[stage]; ++i) {
      const Residual size{channels, width << stage, i == 0 && stage > 0 ? 2 : 1, shape.expansion};
      const std::string name = base::text("layer", stage + 1, ".", i);
      blocks.push_back(residual_block(name, request.maker, size));
      channels = size.out();
    }
  }
  blocks.push_back(std::make_unique<GlobalPool>());
  blocks.push_back(std::make_unique<Head>(request, channels, HeadOptions{"fc.", 0, LinearInit::torch_default}));
  return blocks;
}

}  // namespace lockstep::model
