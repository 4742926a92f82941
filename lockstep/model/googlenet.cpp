// SPDX-License-Identifier: Apache-2.0
// GoogLeNet (Szegedy et al. 2014, arXiv 1409.4842) as torchvision has it: batch norm, 3x3 where the paper has 5x5,
// auxiliary heads in training mode only.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>

#include <optional>

#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

constexpr double kAuxiliaryDropout = 0.7;
constexpr double kHeadDropout = 0.2;

at::Tensor halve(const Block& block, const at::Tensor& input, int64_t kernel) {
  return max_pool(block, input, {.kernel = kernel, .stride = 2, .padding = 0, .ceil = true});
}

class BasicConv {
 public:
  BasicConv(const Site& site, ConvShape shape)
      : conv_(site.in("conv"), truncated(shape)), bn_(site.in("bn"), shape.out, {.epsilon = 1e-3}) {}
  at::Tensor operator()(const at::Tensor& input, Mode mode) const { return bn_.rectified(conv_(input), mode); }

 private:
  static ConvShape truncated(ConvShape shape) {
    shape.init = ConvInit::truncated;
    return shape;
  }
  Conv2d conv_;
  BatchNorm2d bn_;
};

class InceptionStem final : public PlainBlock {
 public:
  explicit InceptionStem(Maker& maker)
      : PlainBlock("stem"),
        conv1_({*this, maker, "conv1."}, {.in = 3, .out = 64, .kernel = 7, .stride = 2, .padding = 3}),
        conv2_({*this, maker, "conv2."}, {.in = 64, .out = 64}),
        conv3_({*this, maker, "conv3."}, {.in = 64, .out = 192, .kernel = 3, .padding = 1}) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    at::Tensor value = halve(*this, conv1_(input, mode), 3);
    return halve(*this, conv3_(conv2_(value, mode), mode), 3);
  }

 private:
  BasicConv conv1_;
  BasicConv conv2_;
  BasicConv conv3_;
};

// A classifier on the way: helps the gradient in training, is not run otherwise.
class AuxiliaryHead {
 public:
  AuxiliaryHead(const Site& site, int64_t in, const spec::Model& model)
      : block_(site.block),
        dropout_(model.dropout > 0 ? model.dropout : kAuxiliaryDropout),
        conv_(site.in("conv"), {.in = in, .out = 128}),
        fc1_(site.in("fc1"), 2048, 1024, LinearInit::truncated_001),
        fc2_(make_classifier(site.in("fc2"), 1024, model.classes, LinearInit::truncated_001)) {}
  at::Tensor operator()(const at::Tensor& input, Mode mode) const {
    const at::Tensor pooled = at::adaptive_avg_pool2d(input, {4, 4});  // [batch, in, 4, 4]
    at::Tensor value = conv_(pooled, mode).contiguous().flatten(1);    // [batch, 2048]
    return fc2_(dropout(block_, fc1_(value).relu_(), dropout_, mode));
  }

 private:
  const Block& block_;
  double dropout_;
  BasicConv conv_;
  Linear fc1_;
  Linear fc2_;
};

struct InceptionRow {
  const char* name;
  int64_t in, ch1, ch3_reduced, ch3, ch5_reduced, ch5, pool;
  int64_t halve_before;   // kernel of the pooling in front, 0: none
  const char* auxiliary;  // name of the auxiliary head behind it
  int64_t out() const { return ch1 + ch3 + ch5 + pool; }
};

constexpr InceptionRow kInceptions[] = {{"inception3a", 192, 64, 96, 128, 16, 32, 32, 0, ""},
                                        {"inception3b", 256, 128, 128, 192, 32, 96, 64, 0, ""},
                                        {"inception4a", 480, 192, 96, 208, 16, 48, 64, 3, "aux1"},
                                        {"inception4b", 512, 160, 112, 224, 24, 64, 64, 0, ""},
                                        {"inception4c", 512, 128, 128, 256, 24, 64, 64, 0, ""},
                                        {"inception4d", 512, 112, 144, 288, 32, 64, 64, 0, "aux2"},
                                        {"inception4e", 528, 256, 160, 320, 32, 128, 128, 0, ""},
                                        {"inception5a", 832, 256, 160, 320, 32, 128, 128, 2, ""},
                                        {"inception5b", 832, 384, 192, 384, 48, 128, 128, 0, ""}};

class Inception final : public Block {
 public:
  Inception(const InceptionRow& row, const Request& request)
      : Block(row.name),
        halve_before_(row.halve_before),
        branch1_(site(request, "branch1"), {.in = row.in, .out = row.ch1}),
        branch2_reduce_(site(request, "branch2.0"), {.in = row.in, .out = row.ch3_reduced}),
        branch2_(site(request, "branch2.1"), {.in = row.ch3_reduced, .out = row.ch3, .kernel = 3, .padding = 1}),
        branch3_reduce_(site(request, "branch3.0"), {.in = row.in, .out = row.ch5_reduced}),
        branch3_(site(request, "branch3.1"), {.in = row.ch5_reduced, .out = row.ch5, .kernel = 3, .padding = 1}),
        branch4_(site(request, "branch4.1"), {.in = row.in, .out = row.pool}) {
    if (*row.auxiliary == 0 || !request.model.auxiliary_heads) return;
    auxiliary_head_.emplace(Site{*this, request.maker, std::string(row.auxiliary) + "."}, row.out(), request.model);
  }

  Bundle run(const Bundle& input, Mode mode) override {
    const at::Tensor value = halve_before_ > 0 ? halve(*this, input[0], halve_before_) : input[0];
    const at::Tensor pooled = max_pool(*this, value, {.kernel = 3, .stride = 1, .padding = 1, .ceil = true});
    Bundle output = input;
    output[0] = at::cat({branch1_(value, mode), branch2_(branch2_reduce_(value, mode), mode),
                         branch3_(branch3_reduce_(value, mode), mode), branch4_(pooled, mode)},
                        1);
    if (auxiliary_head_ && mode == Mode::train) output.push_back((*auxiliary_head_)(output[0], mode));
    return output;
  }

 private:
  Site site(const Request& request, const char* part) { return {*this, request.maker, name() + "." + part + "."}; }

  int64_t halve_before_;
  BasicConv branch1_;
  BasicConv branch2_reduce_;
  BasicConv branch2_;
  BasicConv branch3_reduce_;
  BasicConv branch3_;
  BasicConv branch4_;
  std::optional<AuxiliaryHead> auxiliary_head_;
};

}  // namespace

Trunk googlenet_trunk(const Request& request) {
  Trunk trunk;
  trunk.blocks.push_back(std::make_unique<InceptionStem>(request.maker));
  int64_t stride = 8;
  for (const InceptionRow& row : kInceptions) {
    if (row.halve_before > 0) stride *= 2;
    trunk.blocks.push_back(std::make_unique<Inception>(row, request));
    if (trunk.maps.empty() || trunk.maps.back().stride != stride) trunk.maps.emplace_back();
    trunk.maps.back() = {stride, row.name, row.out()};
  }
  return trunk;
}

Blocks googlenet_blocks(const Request& request) {
  const double rate = request.model.dropout > 0 ? request.model.dropout : kHeadDropout;
  Trunk trunk = googlenet_trunk(request);
  const int64_t channels = trunk.maps.back().channels;
  trunk.blocks.push_back(std::make_unique<GlobalPool>());
  trunk.blocks.push_back(
      std::make_unique<Head>(request, channels, HeadOptions{"fc.", rate, LinearInit::truncated_001}));
  return std::move(trunk.blocks);
}

}  // namespace lockstep::model
