// SPDX-License-Identifier: Apache-2.0
// RainNet (Ayzel et al. 2020, gmd-13-2631), a U-Net whose channels are the frames: two convolutions a level, no norms,
// dropout behind the two deepest. With 4 frames in and 1 out it is the paper's; more frames come out at once.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr int64_t kRainNetWidth = 64, kRainNetLevels = 5;
constexpr double kRainNetDropout = 0.5;

ConvShape rain_convolution(int64_t in, int64_t out, int64_t kernel = 3) {
  return {
      .in = in, .out = out, .kernel = kernel, .padding = kernel / 2, .bias = true, .init = ConvInit::kaiming_fan_in};
}

// Two convolutions with ReLU.
class ConvPair {
 public:
  ConvPair(Block& block, const Request& request, int64_t in, int64_t out)
      : first_({block, request.maker, block.name() + ".conv1."}, rain_convolution(in, out)),
        second_({block, request.maker, block.name() + ".conv2."}, rain_convolution(out, out)) {}
  at::Tensor operator()(const at::Tensor& input) const { return second_(first_(input).relu_()).relu_(); }

 private:
  Conv2d first_, second_;
};

// Gives {its map, the maps of the levels above, nearest last}. The first one takes the frames as channels.
class DownLevel final : public Block {
 public:
  DownLevel(const Request& request, int64_t level, int64_t in, int64_t out)
      : Block(level == 0 ? "stem" : base::text("down", level)),
        level_(level),
        dropout_(level + 2 >= kRainNetLevels ? dropout_rate(request) : 0),
        images_(memory_format(request.model.layout)),
        convolutions_(*this, request, in, out) {}
  Bundle run(const Bundle& input, Mode mode) override {
    const at::Tensor& from = input[0];
    const at::Tensor taken = level_ == 0 ? from.flatten(1, 2).contiguous(images_)  // [batch, frames, H, W]
                                         : max_pool(*this, from, {.kernel = 2, .stride = 2});
    const at::Tensor map = dropout(*this, convolutions_(taken), dropout_, mode);
    Bundle output{level_ + 1 < kRainNetLevels ? map.alias() : map};
    output.insert(output.end(), input.begin() + 1, input.end());
    if (level_ + 1 < kRainNetLevels) output.push_back(map);
    return output;
  }

 private:
  static double dropout_rate(const Request& request) {
    return request.model.dropout > 0 ? request.model.dropout : kRainNetDropout;
  }
  int64_t level_;
  double dropout_;
  at::MemoryFormat images_;
  ConvPair convolutions_;
};

// Takes the map below, twice as large, beside the last of the maps that came along.
class UpLevel final : public Block {
 public:
  UpLevel(const Request& request, int64_t level, int64_t in, int64_t out)
      : Block(base::text("up", level)), convolutions_(*this, request, in, out) {}
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    const at::Tensor& beside = input.back();
    const at::Tensor larger = at::upsample_nearest2d(input[0], {beside.size(2), beside.size(3)});
    Bundle output{convolutions_(at::cat({larger, beside}, 1))};
    output.insert(output.end(), input.begin() + 1, input.end() - 1);
    return output;
  }

 private:
  ConvPair convolutions_;
};

class RainHead final : public Block {
 public:
  RainHead(const Request& request, int64_t in)
      : Block("head"),
        first_({*this, request.maker, "head.conv1."}, rain_convolution(in, 2 * request.nowcast.outputs)),
        second_({*this, request.maker, "head.conv2."},
                rain_convolution(2 * request.nowcast.outputs, request.nowcast.outputs, 1)) {
    for (const Named& parameter : parameters) classifier.push_back(parameter.name);
  }
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    return {second_(first_(input[0])).unsqueeze(2).to(at::kFloat).contiguous()};  // [batch, frames, 1, H, W]
  }

 private:
  Conv2d first_, second_;
};

}  // namespace

Blocks rainnet_blocks(const Request& request) {
  constexpr int64_t kLeastSide = 1 << (kRainNetLevels - 1);
  const spec::ImageSize& size = request.image_size;
  if (size.height % kLeastSide != 0 || size.width % kLeastSide != 0) {
    throw base::Error(base::Blame::user,
                      base::text("data.image_size: ", spec::to_text(size), " is no multiple of ", kLeastSide,
                                 ", as the four halvings of rainnet need"),
                      "another grid (prep --grid), such as 928");
  }
  const int64_t width = request.model.width > 0 ? request.model.width : kRainNetWidth;
  Blocks blocks;
  int64_t in = request.nowcast.inputs;
  for (int64_t level = 0; level < kRainNetLevels; ++level) {
    blocks.push_back(std::make_unique<DownLevel>(request, level, in, width << level));
    in = width << level;
  }
  for (int64_t level = kRainNetLevels - 2; level >= 0; --level) {
    blocks.push_back(std::make_unique<UpLevel>(request, level, in + (width << level), width << level));
    in = width << level;
  }
  blocks.push_back(std::make_unique<RainHead>(request, in));
  return blocks;
}

}  // namespace lockstep::model
