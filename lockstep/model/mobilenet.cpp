// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381) with torchvision's names.
#include <ATen/ops/hardtanh.h>

#include <optional>

#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr double kMobileDropout = 0.2;
constexpr int64_t kMobileFeatures = 1280;

struct InvertedStage {
  int64_t expansion, out, repeats, stride;
};
constexpr InvertedStage kMobileV2[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                       {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

// Convolution, batch norm, ReLU6: NAME.0 and NAME.1.
class ConvUnit {
 public:
  ConvUnit(const Site& site, ConvShape shape) : conv_(site.in("0"), padded(shape)), norm_(site.in("1"), shape.out) {}
  at::Tensor operator()(const at::Tensor& input, Mode mode) const {
    at::Tensor value = norm_(conv_(input), mode);
    return at::hardtanh_(value, 0, 6);
  }

 private:
  static ConvShape padded(ConvShape shape) {
    shape.padding = (shape.kernel - 1) / 2;
    return shape;
  }

  Conv2d conv_;
  BatchNorm2d norm_;
};

class MobileStem final : public PlainBlock {
 public:
  explicit MobileStem(Maker& maker)
      : PlainBlock("stem"), unit_({*this, maker, "features.0."}, {.in = 3, .out = 32, .kernel = 3, .stride = 2}) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override { return unit_(input, mode); }

 private:
  ConvUnit unit_;
};

// Widen, filter each channel, narrow. Without an expansion the units are numbered from the filter on.
class InvertedBlock final : public PlainBlock {
 public:
  InvertedBlock(const std::string& name, Maker& maker, int64_t in, const InvertedStage& stage)
      : PlainBlock(name), skips_(stage.stride == 1 && in == stage.out) {
    const Site site{*this, maker, name + ".conv."};
    const int64_t wide = in * stage.expansion, narrow_at = stage.expansion == 1 ? 1 : 2;
    if (stage.expansion != 1) widen_.emplace(site.in("0"), ConvShape{.in = in, .out = wide});
    filter_.emplace(site.in(base::text(narrow_at - 1)),
                    ConvShape{.in = wide, .out = wide, .kernel = 3, .stride = stage.stride, .groups = wide});
    narrow_.emplace(site.in(base::text(narrow_at)), ConvShape{.in = wide, .out = stage.out});
    norm_.emplace(site.in(base::text(narrow_at + 1)), stage.out);
  }
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    const at::Tensor wide = widen_ ? (*widen_)(input, mode) : input;
    at::Tensor narrow = (*norm_)((*narrow_)((*filter_)(wide, mode)), mode);
    return skips_ ? narrow.add_(input) : narrow;
  }

 private:
  bool skips_;
  std::optional<ConvUnit> widen_;
  std::optional<ConvUnit> filter_;
  std::optional<Conv2d> narrow_;
  std::optional<BatchNorm2d> norm_;
};

class MobilePool final : public PlainBlock {
 public:
  MobilePool(const std::string& name, Maker& maker, int64_t in)
      : PlainBlock("pool"), unit_({*this, maker, name + "."}, {.in = in, .out = kMobileFeatures}) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override { return global_average(unit_(input, mode)); }

 private:
  ConvUnit unit_;
};

}  // namespace

Trunk mobilenet_trunk(const Request& request) {
  Trunk trunk;
  trunk.blocks.push_back(std::make_unique<MobileStem>(request.maker));
  int64_t index = 1, in = 32, stride = 2;
  for (InvertedStage stage : kMobileV2) {
    stride *= stage.stride;
    for (int64_t i = 0; i < stage.repeats; ++i, ++index) {
      trunk.blocks.push_back(std::make_unique<InvertedBlock>(base::text("features.", index), request.maker, in, stage));
      in = stage.out;
      stage.stride = 1;
    }
    trunk.note_map({stride, trunk.blocks.back()->name(), in});
  }
  return trunk;
}

Blocks mobilenet_blocks(const Request& request) {
  Trunk trunk = mobilenet_trunk(request);
  const std::string last = base::text("features.", trunk.blocks.size());
  const int64_t in = trunk.maps.back().channels;
  Blocks blocks = std::move(trunk.blocks);
  blocks.push_back(std::make_unique<MobilePool>(last, request.maker, in));
  const double rate = request.model.dropout > 0 ? request.model.dropout : kMobileDropout;
  blocks.push_back(
      std::make_unique<Head>(request, kMobileFeatures, HeadOptions{"classifier.1.", rate, LinearInit::normal_001}));
  return blocks;
}

}  // namespace lockstep::model
