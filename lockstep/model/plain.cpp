// SPDX-License-Identifier: Apache-2.0
// Small networks of our own: a linear classifier on pixels, a multi-layer perceptron, a small convolutional network.
#include <ATen/ops/relu.h>

#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

class Flatten final : public PlainBlock {
 public:
  Flatten() : PlainBlock("stem") {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return input.flatten(1); }
};

class HiddenLayer final : public PlainBlock {
 public:
  HiddenLayer(const std::string& name, Maker& maker, int64_t in, int64_t out, double dropout)
      : PlainBlock(name), dropout_(dropout), linear_({*this, maker, name + "."}, in, out) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return dropout(*this, linear_(input.flatten(1)).relu_(), dropout_, mode);
  }

 private:
  double dropout_;
  Linear linear_;
};

class ConvNormRelu final : public PlainBlock {
 public:
  ConvNormRelu(const std::string& name, Maker& maker, const ConvShape& shape)
      : PlainBlock(name),
        conv_({*this, maker, name + ".conv."}, shape),
        norm_({*this, maker, name + ".norm."}, shape.out) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override { return norm_.rectified(conv_(input), mode); }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

constexpr int64_t kChannels = 3;

int64_t num_inputs(const Request& request) {
  return kChannels * request.image_size.pixels();
}

}  // namespace

Blocks linear_blocks(const Request& request) {
  Blocks blocks;
  blocks.push_back(std::make_unique<Flatten>());
  blocks.push_back(
      std::make_unique<Head>(request, num_inputs(request), HeadOptions{"head.", 0, LinearInit::torch_default}));
  return blocks;
}

Blocks mlp_blocks(const Request& request) {
  const int64_t width = request.model.width > 0 ? request.model.width : 256;
  const int64_t depth = request.model.depth > 0 ? request.model.depth : 2;  // hidden layers
  Blocks blocks;
  for (int64_t i = 0; i < depth; ++i) {
    const std::string name = i == 0 ? "stem" : base::text("layer", i);
    blocks.push_back(std::make_unique<HiddenLayer>(name, request.maker, i == 0 ? num_inputs(request) : width, width,
                                                   request.model.dropout));
  }
  blocks.push_back(std::make_unique<Head>(request, width, HeadOptions{"head.", 0, LinearInit::torch_default}));
  return blocks;
}

// Five convolutions, 0.39 M parameters at width 32. Strides, not pooling: at 64 pixels this is 22 M multiply-adds an
// image instead of 57 M, which is what a newcomer's laptop feels.
Blocks smallcnn_blocks(const Request& request) {
  const int64_t width = request.model.width > 0 ? request.model.width : 32;
  struct Row {
    const char* name;
    int64_t in, out, stride;
  };
  const Row rows[] = {{"stem", 3, width, 2},
                      {"block1", width, 2 * width, 2},
                      {"block2", 2 * width, 4 * width, 2},
                      {"block3", 4 * width, 4 * width, 1},
                      {"block4", 4 * width, 4 * width, 2}};
  Blocks blocks;
  for (const Row& row : rows) {
    const ConvShape shape{.in = row.in, .out = row.out, .kernel = 3, .stride = row.stride, .padding = 1};
    blocks.push_back(std::make_unique<ConvNormRelu>(row.name, request.maker, shape));
  }
  blocks.push_back(std::make_unique<GlobalPool>());
  blocks.push_back(std::make_unique<Head>(request, 4 * width,
                                          HeadOptions{"head.", request.model.dropout, LinearInit::torch_default}));
  return blocks;
}

}  // namespace lockstep::model
