// SPDX-License-Identifier: Apache-2.0
// ResNet (He et al. 2015, arXiv 1512.03385) as torchvision has it: stride in the 3x3 convolution ("v1.5").
#include <array>
#include <optional>
#include <vector>

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

class ResnetStem final : public PlainBlock {
 public:
  ResnetStem(Maker& maker, int64_t width)
      : PlainBlock("stem"),
        conv1_({*this, maker, "conv1."}, {.in = 3, .out = width, .kernel = 7, .stride = 2, .padding = 3}),
        bn1_({*this, maker, "bn1."}, width) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return max_pool(*this, bn1_.rectified(conv1_(input), mode), {.kernel = 3, .stride = 2, .padding = 1});
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

// A convolution and the batch norm behind it.
class ConvNorm {
 public:
  ConvNorm(const Site& conv, const Site& norm, const ConvShape& shape) : conv_(conv, shape), norm_(norm, shape.out) {}
  at::Tensor operator()(const at::Tensor& input, Mode mode) const { return norm_(conv_(input), mode); }
  at::Tensor rectified(const at::Tensor& input, Mode mode, const at::Tensor& added = {}) const {
    return norm_.rectified(conv_(input), mode, added);
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

std::vector<ConvShape> convolutions(const Residual& size) {
  const ConvShape square{.in = size.planes, .out = size.planes, .kernel = 3, .stride = size.stride, .padding = 1};
  if (size.expansion > 1) {
    return {{.in = size.in, .out = size.planes}, square, {.in = size.planes, .out = size.out()}};
  }
  ConvShape first = square;
  ConvShape second = square;
  first.in = size.in;
  second.stride = 1;
  return {first, second};
}

// Two 3x3 convolutions or the bottleneck of three, and the input added to what they give.
class ResidualBlock final : public PlainBlock {
 public:
  ResidualBlock(const std::string& name, Maker& maker, const Residual& size) : PlainBlock(name) {
    const Site site{*this, maker, name + "."};
    for (const ConvShape& shape : convolutions(size)) {
      const size_t number = layers_.size() + 1;
      layers_.emplace_back(site.in(base::text("conv", number)), site.in(base::text("bn", number)), shape);
    }
    if (!size.projects()) return;
    const Site downsample = site.in("downsample");
    const ConvShape shape{.in = size.in, .out = size.out(), .stride = size.stride};
    downsample_.emplace(downsample.in("0"), downsample.in("1"), shape);
  }
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    at::Tensor value = input;
    for (size_t i = 0; i + 1 < layers_.size(); ++i) value = layers_[i].rectified(value, mode);
    const ConvNorm& last = layers_.back();
    if (!downsample_) return last.rectified(value, mode, input);
    if (fuses(value)) return last.rectified(value, mode, (*downsample_)(input, mode));
    value = last(value, mode);  // the reference's order
    return value.add_((*downsample_)(input, mode)).relu_();
  }

 private:
  std::vector<ConvNorm> layers_;
  std::optional<ConvNorm> downsample_;
};

}  // namespace

Trunk resnet_trunk(const Request& request, const std::string& name) {
  const ResnetShape shape = resnet_shape(name);
  const int64_t width = request.model.width > 0 ? request.model.width : 64;
  Trunk trunk;
  trunk.blocks.push_back(std::make_unique<ResnetStem>(request.maker, width));
  int64_t channels = width;
  for (size_t stage = 0; stage < shape.stages.size(); ++stage) {
    for (int64_t i = 0; i < shape.stages[stage]; ++i) {
      const Residual size{channels, width << stage, i == 0 && stage > 0 ? 2 : 1, shape.expansion};
      const std::string block = base::text("layer", stage + 1, ".", i);
      trunk.blocks.push_back(std::make_unique<ResidualBlock>(block, request.maker, size));
      channels = size.out();
    }
    trunk.maps.push_back({int64_t{4} << stage, trunk.blocks.back()->name(), channels});
  }
  return trunk;
}

Blocks resnet_blocks(const Request& request) {
  Trunk trunk = resnet_trunk(request, request.model.name);
  const int64_t channels = trunk.maps.back().channels;
  trunk.blocks.push_back(std::make_unique<GlobalPool>());
  trunk.blocks.push_back(std::make_unique<Head>(request, channels, HeadOptions{"fc.", 0, LinearInit::torch_default}));
  return std::move(trunk.blocks);
}

}  // namespace lockstep::model
