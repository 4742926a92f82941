// SPDX-License-Identifier: Apache-2.0
// ConvNeXt (Liu et al. 2022, arXiv 2201.03545) with torchvision's names, shapes and initial values.

#include <algorithm>
#include <iterator>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr double kNextEpsilon = 1e-6;
constexpr double kLayerScale = 1e-6;
constexpr int64_t kNextReduction = 32;  // pixels of an image, along a side, behind one of the last map

struct NextShape {
  const char* name;
  int64_t width;  // of the first stage; each further one has twice as much
  int64_t depths[4];
  double drop_path;
};
constexpr NextShape kNexts[] = {{"convnext_tiny", 96, {3, 3, 9, 3}, 0.1},
                                {"convnext_small", 96, {3, 3, 27, 3}, 0.4},
                                {"convnext_base", 128, {3, 3, 27, 3}, 0.5},
                                {"convnext_large", 192, {3, 3, 27, 3}, 0.5}};

const NextShape& next_shape(const Request& request) {
  for (const int64_t side : {request.image_size.height, request.image_size.width}) {
    if (side >= kNextReduction) continue;
    throw base::Error(
        base::Blame::user,
        base::text("data.image_size: ", side, " leaves nothing for the last blocks of ", request.model.name),
        base::text("use ", kNextReduction, " or more"));
  }
  const auto* found = std::find_if(std::begin(kNexts), std::end(kNexts),
                                   [&](const NextShape& shape) { return request.model.name == shape.name; });
  base::ensure(found != std::end(kNexts), "a ConvNeXt of the table");
  return *found;
}

// Over the channels of each pixel.
class ChannelNorm {
 public:
  ChannelNorm(const Site& site, int64_t channels) : norm_(site, channels, kNextEpsilon) {}
  at::Tensor operator()(const at::Tensor& input) const {
    return norm_(input.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});  // [batch, height, width, channels] and back
  }

 private:
  LayerNorm norm_;
};

class NextStem final : public PlainBlock {
 public:
  NextStem(Maker& maker, int64_t out)
      : PlainBlock("stem"),
        conv_({*this, maker, "features.0.0."},
              {.in = 3, .out = out, .kernel = 4, .stride = 4, .bias = true, .init = ConvInit::truncated_002}),
        norm_({*this, maker, "features.0.1."}, out) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return norm_(conv_(input)); }

 private:
  Conv2d conv_;
  ChannelNorm norm_;
};

// Halves the map and doubles the channels.
class NextReduction final : public PlainBlock {
 public:
  NextReduction(const std::string& name, Maker& maker, int64_t in)
      : PlainBlock(name),
        norm_({*this, maker, name + ".0."}, in),
        conv_({*this, maker, name + ".1."},
              {.in = in, .out = 2 * in, .kernel = 2, .stride = 2, .bias = true, .init = ConvInit::truncated_002}) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return conv_(norm_(input)); }

 private:
  ChannelNorm norm_;
  Conv2d conv_;
};

// Filter each channel, then a perceptron over the channels of each pixel.
class NextBlock final : public PlainBlock {
 public:
  NextBlock(const std::string& name, Maker& maker, int64_t width, double path_rate)
      : PlainBlock(name),
        path_rate_(path_rate),
        layer_scale_({*this, maker, name + "."}, "layer_scale", {width, 1, 1}, Fill::constant(kLayerScale)),
        filter_({*this, maker, name + ".block.0."}, {.in = width,
                                                     .out = width,
                                                     .kernel = 7,
                                                     .padding = 3,
                                                     .groups = width,
                                                     .bias = true,
                                                     .init = ConvInit::truncated_002}),
        norm_({*this, maker, name + ".block.2."}, width, kNextEpsilon),
        widen_({*this, maker, name + ".block.3."}, width, 4 * width, LinearInit::truncated_002),
        narrow_({*this, maker, name + ".block.5."}, 4 * width, width, LinearInit::truncated_002) {}

  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    const at::Tensor pixels = norm_(filter_(input).permute({0, 2, 3, 1}));  // [batch, height, width, channels]
    const at::Tensor mixed = narrow_(widen_.gelu(pixels)).permute({0, 3, 1, 2});
    return drop_path(*this, layer_scale_().mul(mixed), path_rate_, mode).add_(input);
  }

 private:
  double path_rate_;
  Parameter layer_scale_;
  Conv2d filter_;
  LayerNorm norm_;
  Linear widen_;
  Linear narrow_;
};

class NextPool final : public PlainBlock {
 public:
  NextPool(Maker& maker, int64_t width)
      : PlainBlock("pool"), norm_({*this, maker, "classifier.0."}, width, kNextEpsilon) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return norm_(global_average(input)); }

 private:
  LayerNorm norm_;
};

}  // namespace

Blocks convnext_blocks(const Request& request) {
  const NextShape& shape = next_shape(request);
  const double path_rate = request.model.drop_path > 0 ? request.model.drop_path : shape.drop_path;
  int64_t total = 0;
  for (const int64_t depth : shape.depths) total += depth;
  Blocks blocks;
  blocks.push_back(std::make_unique<NextStem>(request.maker, shape.width));
  int64_t width = shape.width, index = 0, feature = 1;  // "features.1": the first stage
  for (const int64_t depth : shape.depths) {
    if (feature > 1) {
      blocks.push_back(std::make_unique<NextReduction>(base::text("features.", feature++), request.maker, width));
      width *= 2;
    }
    for (int64_t i = 0; i < depth; ++i, ++index) {  // the rate grows linearly with the depth
      const double rate = path_rate * static_cast<double>(index) / static_cast<double>(total - 1);
      blocks.push_back(
          std::make_unique<NextBlock>(base::text("features.", feature, ".", i), request.maker, width, rate));
    }
    ++feature;
  }
  blocks.push_back(std::make_unique<NextPool>(request.maker, width));
  blocks.push_back(std::make_unique<Head>(request, width, HeadOptions{"classifier.2.", 0, LinearInit::truncated_002}));
  return blocks;
}

}  // namespace lockstep::model
