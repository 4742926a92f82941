// SPDX-License-Identifier: Apache-2.0
// ConvLSTM encoder and forecaster (Shi et al. 2015, arXiv 1506.04214): the encoder's layers read the frames, the
// forecaster's, in the opposite order, start from their last states and take no frames; a 1 x 1 convolution over the
// states of all of them gives the forecast. Frames are cut into patches whose pixels become channels.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"
#include "lockstep/model/lstm_layer.h"

namespace lockstep::model {
namespace {

constexpr int64_t kConvLstmPatch = 1;

int64_t patch_of(const Request& request) {
  return request.model.patch > 0 ? request.model.patch : kConvLstmPatch;
}

// [batch, steps, 1, H, W] to [steps x batch, patch x patch, H / patch, W / patch], step by step.
class FramesToSteps final : public PlainBlock {
 public:
  explicit FramesToSteps(const Request& request)
      : PlainBlock("stem"), patch_(patch_of(request)), images_(memory_format(request.model.layout)) {}
  at::Tensor forward(const at::Tensor& frames, Mode /*mode*/) override {
    const int64_t batch = frames.size(0), steps = frames.size(1), height = frames.size(3) / patch_,
                  width = frames.size(4) / patch_;
    return frames.view({batch, steps, height, patch_, width, patch_})
        .permute({1, 0, 3, 5, 2, 4})
        .reshape({steps * batch, patch_ * patch_, height, width})
        .contiguous(images_);
  }

 private:
  int64_t patch_;
  at::MemoryFormat images_;
};

// The tensors of a layer.
class LstmWeights {
 public:
  // `in`: channels that come in; 0: nothing does.
  LstmWeights(Block& block, const Request& request, int64_t in, int64_t channels) : how_(request.nowcast) {
    const Site site{block, request.maker, block.name() + "."};
    const auto weight = [&](const char* layer, int64_t from, int64_t side) {
      const double fan_in = static_cast<double>(from * side * side);
      return Parameter(site.in(layer), "weight", {4 * channels, from, side, side},
                       Fill::uniform(1 / std::sqrt(fan_in)));
    };
    if (in > 0) input_ = weight("input", in, how_.input_kernel);
    state_ = weight("state", channels, how_.state_kernel);
    bias_ = Parameter(site, "bias", {4 * channels}, Fill::constant(0));
    peepholes_ = Parameter(site, "peepholes", {3, channels}, Fill::constant(0));
  }

  LstmStates run(const Block& block, const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& cells,
                 int64_t steps) const {
    return run_lstm_layer({input, hidden, cells, input_ ? input_() : at::Tensor(), state_(), bias_(), peepholes_(),
                           steps, how_.recompute_steps, block.kernels == spec::Kernels::fused});
  }

 private:
  spec::Nowcast how_;
  Parameter input_, state_, bias_, peepholes_;
};

// Takes {maps of all steps, states of the layers before}; gives {its own maps, those states, its last hidden, cells}.
class EncoderLayer final : public Block {
 public:
  EncoderLayer(const Request& request, int64_t number, int64_t in, int64_t channels)
      : Block(base::text("encoder", number)), steps_(request.nowcast.inputs), weights_(*this, request, in, channels) {}
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    const LstmStates states = weights_.run(*this, input[0], {}, {}, steps_);
    const int64_t rows = states.hidden.size(0) / steps_;
    Bundle output{states.hidden};
    output.insert(output.end(), input.begin() + 1, input.end());
    output.push_back(states.hidden.narrow(0, (steps_ - 1) * rows, rows));
    output.push_back(states.cells);
    return output;
  }

 private:
  int64_t steps_;
  LstmWeights weights_;
};

// Takes {maps of all steps, states of `left` encoder layers, maps of the forecaster's layers before}; starts from the
// last of these states and gives its own maps in front, to go on, and at the end, to be seen.
class ForecasterLayer final : public Block {
 public:
  ForecasterLayer(const Request& request, int64_t number, int64_t in, int64_t channels, size_t left)
      : Block(base::text("forecaster", number)),
        steps_(request.nowcast.outputs),
        takes_input_(in > 0),
        left_(left),
        weights_(*this, request, in, channels) {}
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    const size_t own = 1 + 2 * (left_ - 1);
    const LstmStates states =
        weights_.run(*this, takes_input_ ? input[0] : at::Tensor(), input[own], input[own + 1], steps_);
    // The next layer goes on from an alias: its gradients are added up before the head's joins them, whether that layer
    // is recomputed as a whole or not.
    Bundle output{states.hidden.alias()};
    output.insert(output.end(), input.begin() + 1, input.begin() + static_cast<int64_t>(own));
    output.insert(output.end(), input.begin() + static_cast<int64_t>(own + 2), input.end());
    output.push_back(states.hidden);
    return output;
  }

 private:
  int64_t steps_;
  bool takes_input_;
  size_t left_;
  LstmWeights weights_;
};

class ForecastHead final : public Block {
 public:
  ForecastHead(const Request& request, int64_t channels)
      : Block("head"),
        steps_(request.nowcast.outputs),
        patch_(patch_of(request)),
        convolution_({*this, request.maker, "head."},
                     {.in = channels, .out = patch_ * patch_, .bias = true, .init = ConvInit::torch_default}) {
    for (const Named& parameter : parameters) classifier.push_back(parameter.name);
  }
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    const std::vector<at::Tensor> maps(input.begin() + 1, input.end());
    const at::Tensor patches = convolution_(maps.size() == 1 ? maps[0] : at::cat(maps, 1));
    const int64_t batch = patches.size(0) / steps_, height = patches.size(2), width = patches.size(3);
    return {patches
                .view({steps_, batch, patch_, patch_, height, width})  // [steps, batch, py, px, y, x]
                .permute({1, 0, 4, 2, 5, 3})
                .reshape({batch, steps_, 1, height * patch_, width * patch_})
                .to(at::kFloat)};
  }

 private:
  int64_t steps_, patch_;
  Conv2d convolution_;
};

}  // namespace

Blocks convlstm_blocks(const Request& request) {
  const int64_t patch = patch_of(request);
  const spec::ImageSize& size = request.image_size;
  if (size.height % patch != 0 || size.width % patch != 0) {
    throw base::Error(base::Blame::user,
                      base::text("data.image_size: ", spec::to_text(size), " is no multiple of model.patch, ", patch),
                      "another model.patch, or a grid that it divides (prep --grid)");
  }
  std::vector<int64_t> widths;
  for (const double width : request.nowcast.widths) widths.push_back(static_cast<int64_t>(width));
  Blocks blocks;
  blocks.push_back(std::make_unique<FramesToSteps>(request));
  int64_t in = patch * patch, all = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    blocks.push_back(std::make_unique<EncoderLayer>(request, static_cast<int64_t>(i + 1), in, widths[i]));
    in = widths[i];
    all += widths[i];
  }
  for (size_t left = widths.size(); left > 0; --left) {
    const auto number = static_cast<int64_t>(widths.size() - left + 1);
    blocks.push_back(std::make_unique<ForecasterLayer>(request, number, number == 1 ? 0 : in, widths[left - 1], left));
    in = widths[left - 1];
  }
  blocks.push_back(std::make_unique<ForecastHead>(request, all));
  return blocks;
}

}  // namespace lockstep::model
