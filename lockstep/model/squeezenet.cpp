// SPDX-License-Identifier: Apache-2.0
// SqueezeNet 1.0 and 1.1 (Iandola et al. 2016, arXiv 1602.07360) with torchvision's names.
#include <ATen/ops/cat.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr double kSqueezeDropout = 0.5;
constexpr PoolShape kSqueezePool{.kernel = 3, .stride = 2, .ceil = true};

struct FireRow {
  int64_t layer;  // torchvision's number
  int64_t squeeze, out;
  bool halve_before;
};

struct SqueezeShape {
  int64_t stem, stem_kernel;
  int64_t least;  // pixels of a side that reach the last pooling
  std::vector<FireRow> fires;
};

SqueezeShape squeeze_shape(const std::string& name) {
  if (name == "squeezenet1_0") {
    return {96,
            7,
            21,
            {{3, 16, 128, true},
             {4, 16, 128, false},
             {5, 32, 256, false},
             {7, 32, 256, true},
             {8, 48, 384, false},
             {9, 48, 384, false},
             {10, 64, 512, false},
             {12, 64, 512, true}}};
  }
  return {64,
          3,
          17,
          {{3, 16, 128, true},
           {4, 16, 128, false},
           {6, 32, 256, true},
           {7, 32, 256, false},
           {9, 48, 384, true},
           {10, 48, 384, false},
           {11, 64, 512, false},
           {12, 64, 512, false}}};
}

ConvShape fire_conv(int64_t in, int64_t out, int64_t kernel) {
  return {.in = in, .out = out, .kernel = kernel, .padding = kernel / 2, .bias = true, .init = ConvInit::he_uniform};
}

class SqueezeStem final : public PlainBlock {
 public:
  SqueezeStem(const SqueezeShape& shape, Maker& maker)
      : PlainBlock("stem"),
        conv_({*this, maker, "features.0."}, {.in = 3,
                                              .out = shape.stem,
                                              .kernel = shape.stem_kernel,
                                              .stride = 2,
                                              .bias = true,
                                              .init = ConvInit::he_uniform}) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return conv_(input).relu_(); }

 private:
  Conv2d conv_;
};

// Narrows, then widens by filters of one pixel and of nine side by side.
class Fire final : public PlainBlock {
 public:
  Fire(const FireRow& row, Maker& maker, int64_t in)
      : PlainBlock(base::text("features.", row.layer)),
        halves_(row.halve_before),
        squeeze_({*this, maker, name() + ".squeeze."}, fire_conv(in, row.squeeze, 1)),
        expand1_({*this, maker, name() + ".expand1x1."}, fire_conv(row.squeeze, row.out / 2, 1)),
        expand3_({*this, maker, name() + ".expand3x3."}, fire_conv(row.squeeze, row.out / 2, 3)) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override {
    const at::Tensor narrow = squeeze_(halves_ ? max_pool(*this, input, kSqueezePool) : input).relu_();
    return at::cat({expand1_(narrow).relu_(), expand3_(narrow).relu_()}, 1);
  }

 private:
  bool halves_;
  Conv2d squeeze_;
  Conv2d expand1_;
  Conv2d expand3_;
};

// Classifies every place and averages what is above 0: no output is below it.
class SqueezeHead final : public PlainBlock {
 public:
  SqueezeHead(const Request& request, int64_t in)
      : PlainBlock("head"),
        dropout_(request.model.dropout > 0 ? request.model.dropout : kSqueezeDropout),
        conv_({*this, request.maker, "classifier.1."},
              {.in = in, .out = request.model.classes, .bias = true, .init = ConvInit::normal_001}) {
    for (const Named& parameter : parameters) classifier.push_back(parameter.name);
  }
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    return global_average(conv_(dropout(*this, input, dropout_, mode)).relu_());
  }

 private:
  double dropout_;
  Conv2d conv_;
};

void check_size(const Request& request, int64_t least) {
  const int64_t side = std::min(request.image_size.height, request.image_size.width);
  if (side >= least) return;
  throw base::Error(
      base::Blame::user,
      base::text("data.image_size: ", side, " leaves nothing for the last blocks of ", request.model.name),
      base::text("use ", least, " or more"));
}

}  // namespace

Blocks squeezenet_blocks(const Request& request) {
  const SqueezeShape shape = squeeze_shape(request.model.name);
  check_size(request, shape.least);
  Blocks blocks;
  blocks.push_back(std::make_unique<SqueezeStem>(shape, request.maker));
  int64_t in = shape.stem;
  for (const FireRow& row : shape.fires) {
    blocks.push_back(std::make_unique<Fire>(row, request.maker, in));
    in = row.out;
  }
  blocks.push_back(std::make_unique<SqueezeHead>(request, in));
  return blocks;
}

}  // namespace lockstep::model
