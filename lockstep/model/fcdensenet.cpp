// SPDX-License-Identifier: Apache-2.0
// FC-DenseNet, "the one hundred layers Tiramisu" (Jegou et al. 2016, arXiv 1611.09326), with the parameter names of its
// best-known PyTorch version. A dense block is one block of the network: recomputed, it keeps its input alone, where
// every layer's own input would be most of what training holds.
#include <ATen/ops/cat.h>

#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr int64_t kStemChannels = 48;
constexpr double kTiramisuDropout = 0.2;  // the paper's
constexpr size_t kTiramisuLevels = 5;

struct Tiramisu {
  int64_t growth = 16;
  std::array<int64_t, 2 * kTiramisuLevels + 1> layers = {};  // down, bottleneck, up
};

Tiramisu tiramisu_of(const std::string& name) {
  if (name == "fcdensenet56") return {12, {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}};
  if (name == "fcdensenet67") return {16, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}};
  base::ensure(name == "fcdensenet103", "an FC-DenseNet of the table");
  return {16, {4, 5, 7, 10, 12, 15, 12, 10, 7, 5, 4}};
}

ConvShape tiramisu_conv(int64_t in, int64_t out, int64_t kernel) {
  return {.in = in, .out = out, .kernel = kernel, .padding = kernel / 2, .bias = true, .init = ConvInit::he_uniform};
}

class TiramisuStem final : public PlainBlock {
 public:
  explicit TiramisuStem(Maker& maker)
      : PlainBlock("stem"), conv_({*this, maker, "firstconv."}, tiramisu_conv(3, kStemChannels, 3)) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return conv_(input); }

 private:
  Conv2d conv_;
};

// BN, ReLU, convolution, dropout.
class NormedConv {
 public:
  NormedConv(const Site& site, const ConvShape& shape)
      : block_(&site.block), norm_(site.in("norm"), shape.in), conv_(site.in("conv"), shape) {}
  at::Tensor operator()(const at::Tensor& input, double rate, Mode mode) const {
    return dropout(*block_, conv_(norm_.rectified(input, mode)), rate, mode);
  }

 private:
  const Block* block_;
  BatchNorm2d norm_;
  Conv2d conv_;
};

// Every layer reads what stands before it and adds `growth` maps to it. What goes on: all of it, or the new maps alone.
class TiramisuDense final : public PlainBlock {
 public:
  struct Shape {
    int64_t in = 0, growth = 0, layers = 0;
    bool gives_all = true;
  };
  TiramisuDense(const std::string& name, const std::string& prefix, Maker& maker, const Shape& shape, double dropout)
      : PlainBlock(name), shape_(shape), dropout_(dropout) {
    layers_.reserve(static_cast<size_t>(shape.layers));
    for (int64_t i = 0; i < shape.layers; ++i) {
      const Site site{*this, maker, base::text(prefix, "layers.", i, ".")};
      layers_.emplace_back(site, tiramisu_conv(shape.in + i * shape.growth, shape.growth, 3));
    }
  }

  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    std::vector<at::Tensor> fresh;
    at::Tensor stack = input;
    for (const NormedConv& layer : layers_) {
      fresh.push_back(layer(stack, dropout_, mode));
      const bool is_last = fresh.size() == layers_.size();
      if (!is_last || shape_.gives_all) stack = at::cat({stack, fresh.back()}, 1);
    }
    return shape_.gives_all ? stack : at::cat(fresh, 1);
  }

 private:
  Shape shape_;
  double dropout_;
  std::vector<NormedConv> layers_;
};

// Half the size; the maps before it travel along, for the way up.
class TransitionDown final : public Block {
 public:
  TransitionDown(const std::string& name, Maker& maker, int64_t channels, double dropout)
      : Block(name), dropout_(dropout), layer_({*this, maker, name + "."}, tiramisu_conv(channels, channels, 1)) {}

  // Goes on from an alias: the gradients of the way down are added up before that of the way up joins them.
  Bundle run(const Bundle& input, Mode mode) override {
    Bundle output = input;
    output[0] = max_pool(*this, layer_(input[0].alias(), dropout_, mode), {});
    output.push_back(input[0]);
    return output;
  }

 private:
  double dropout_;
  NormedConv layer_;
};

// Twice the size and one pixel, cut to the last of the maps that travel along, which join it.
class TransitionUp final : public Block {
 public:
  TransitionUp(const std::string& name, Maker& maker, int64_t channels)
      : Block(name),
        spread_(
            {*this, maker, name + ".convTrans."},
            {.in = channels, .out = channels, .kernel = 3, .stride = 2, .bias = true, .init = ConvInit::he_uniform}) {}

  Bundle run(const Bundle& input, Mode /*mode*/) override {
    Bundle output = input;
    const at::Tensor skip = output.back();
    output.pop_back();
    const at::Tensor grown = spread_(input[0]);
    const int64_t height = skip.size(2), width = skip.size(3);
    const at::Tensor centre =
        grown.narrow(2, (grown.size(2) - height) / 2, height).narrow(3, (grown.size(3) - width) / 2, width);
    output[0] = at::cat({centre, skip}, 1);
    return output;
  }

 private:
  ConvTranspose2d spread_;
};

// Logits of every pixel, float [batch, classes, height, width].
class PixelHead final : public PlainBlock {
 public:
  PixelHead(Maker& maker, int64_t in, int64_t classes)
      : PlainBlock("head"), conv_({*this, maker, "finalConv."}, tiramisu_conv(in, classes, 1)) {
    for (const Named& parameter : parameters) classifier.push_back(parameter.name);
  }
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return conv_(input).to(at::kFloat); }

 private:
  Conv2d conv_;
};

void check_tiramisu_size(const Request& request) {
  constexpr int64_t kLeast = int64_t{1} << kTiramisuLevels;
  if (request.image_size.height >= kLeast && request.image_size.width >= kLeast) return;
  throw base::Error(base::Blame::user,
                    base::text("data.image_size: ", spec::to_text(request.image_size), " is too small for ",
                               request.model.name, ", which halves it five times"),
                    base::text(kLeast, " pixels or more each way"));
}

}  // namespace

Blocks fcdensenet_blocks(const Request& request) {
  check_tiramisu_size(request);
  Tiramisu net = tiramisu_of(request.model.name);
  if (request.model.width > 0) net.growth = request.model.width;
  const double dropout = request.model.dropout > 0 ? request.model.dropout : kTiramisuDropout;
  Maker& maker = request.maker;
  Blocks blocks;
  blocks.push_back(std::make_unique<TiramisuStem>(maker));
  int64_t channels = kStemChannels;
  const auto add_dense = [&](const std::string& name, const std::string& prefix, int64_t layers, bool gives_all) {
    const TiramisuDense::Shape shape{channels, net.growth, layers, gives_all};
    blocks.push_back(std::make_unique<TiramisuDense>(name, prefix, maker, shape, dropout));
    channels = gives_all ? channels + layers * net.growth : layers * net.growth;
  };
  std::vector<int64_t> skips;
  for (size_t i = 0; i < kTiramisuLevels; ++i) {
    const std::string name = base::text("denseBlocksDown.", i);
    add_dense(name, name + ".", net.layers[i], true);
    skips.push_back(channels);
    blocks.push_back(std::make_unique<TransitionDown>(base::text("transDownBlocks.", i), maker, channels, dropout));
  }
  add_dense("bottleneck", "bottleneck.bottleneck.", net.layers[kTiramisuLevels], false);
  for (size_t i = 0; i < kTiramisuLevels; ++i) {
    blocks.push_back(std::make_unique<TransitionUp>(base::text("transUpBlocks.", i), maker, channels));
    channels += skips[kTiramisuLevels - 1 - i];
    const std::string name = base::text("denseBlocksUp.", i);
    add_dense(name, name + ".", net.layers[kTiramisuLevels + 1 + i], i + 1 == kTiramisuLevels);
  }
  blocks.push_back(std::make_unique<PixelHead>(maker, channels, request.model.classes));
  return blocks;
}

}  // namespace lockstep::model
