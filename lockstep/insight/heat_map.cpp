// SPDX-License-Identifier: Apache-2.0
#include "lockstep/insight/heat_map.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/attention.h"

namespace lockstep::insight {
namespace {

using base::Blame;
using base::Error;

constexpr int64_t kSquares = 7;        // that a side is covered by; each is half a square from the next
constexpr int64_t kCoveredBatch = 32;  // covered images in one pass

model::Bundle inputs_of(const model::Network& network, const at::Tensor& images) {
  return network.inputs_from(model::NamedTensors{{"image", images}});
}

at::Tensor logits_from(const model::Network& network, model::Bundle values, size_t from) {
  return network.outputs_from(network.run(std::move(values), model::Mode::evaluate, from, network.blocks().size()))
      .at("output");
}

bool is_map(const at::Tensor& value) {
  return value.dim() == 4 && value.size(2) * value.size(3) > 1;
}

// What the blocks give up to the last one that gives maps.
struct LastMaps {
  model::Bundle values;
  size_t next = 0;  // the block that takes them; 0: no block gives maps
};

LastMaps last_maps(const model::Network& network, const at::Tensor& images) {
  const c10::AutoGradMode no_gradients(false);
  LastMaps found;
  model::Bundle values = inputs_of(network, images);
  for (size_t i = 0; i + 1 < network.blocks().size(); ++i) {
    values = network.run(std::move(values), model::Mode::evaluate, i, i + 1);
    if (is_map(values.front())) found = {values, i + 1};
  }
  return found;
}

// [rows, height, width] of the image's size, each divided by its largest value.
at::Tensor fitted(const at::Tensor& maps, const at::Tensor& images) {
  const at::Tensor large = at::upsample_bilinear2d(maps.to(at::kFloat).unsqueeze(1), {images.size(2), images.size(3)},
                                                   /*align_corners=*/false)
                               .squeeze(1);
  const at::Tensor most = large.amax({1, 2}, /*keepdim=*/true).clamp_min(1e-20);
  return (large / most).to(at::kCPU).contiguous();
}

at::Tensor gradient_maps(const model::Network& network, const at::Tensor& images, const at::Tensor& classes) {
  LastMaps found = last_maps(network, images);
  if (found.next == 0) {
    throw Error(Blame::user, base::text(network.name(), " has no maps for grad_cam"),
                "occlusion works for any network");
  }
  const c10::AutoGradMode gradients(true);
  const at::Tensor maps = found.values.front().detach().requires_grad_(true);
  found.values.front() = maps.clone();  // a block may change what it takes in place
  const at::Tensor logits = logits_from(network, std::move(found.values), found.next);
  const at::Tensor score = logits.gather(1, classes.unsqueeze(1)).sum();
  const at::Tensor slope = torch::autograd::grad({score}, {maps}).front();
  const at::Tensor weights = slope.mean({2, 3}, /*keepdim=*/true);  // [rows, channels, 1, 1]
  return fitted((weights * maps.detach()).sum(1).relu(), images);
}

at::Tensor rollout_maps(const model::Network& network, const at::Tensor& images) {
  const c10::AutoGradMode no_gradients(false);
  model::Bundle values = inputs_of(network, images);
  at::Tensor shares;  // [rows, tokens, tokens]: what each token is made of
  for (size_t i = 0; i < network.blocks().size(); ++i) {
    if (const auto* block = dynamic_cast<const model::AttentionBlock*>(network.blocks()[i].get())) {
      const at::Tensor mixed = block->attention_shares(values.front()).mean(1);
      const at::Tensor own = (mixed + at::eye(mixed.size(1), mixed.options())) / 2;  // the residual path
      shares = shares.defined() ? at::matmul(own, shares) : own;
    }
    values = network.run(std::move(values), model::Mode::evaluate, i, i + 1);
  }
  if (!shares.defined()) {
    throw Error(Blame::user, base::text(network.name(), " has no attention for rollout"),
                "occlusion works for any network");
  }
  const at::Tensor patches = shares.select(1, 0).slice(1, 1);  // of the class token, without itself
  const auto side = static_cast<int64_t>(std::llround(
      std::sqrt(static_cast<double>(images.size(2) * images.size(3)) / static_cast<double>(patches.size(1)))));
  return fitted(patches.reshape({images.size(0), images.size(2) / side, images.size(3) / side}), images);
}

struct Square {
  int64_t top, left, height, width;
};

std::vector<Square> squares_over(int64_t height, int64_t width) {
  const int64_t side = std::max<int64_t>(1, (std::min(height, width) + kSquares - 1) / kSquares);
  const int64_t step = std::max<int64_t>(1, side / 2);
  std::vector<Square> all;
  for (int64_t top = 0; top < height; top += step) {
    for (int64_t left = 0; left < width; left += step) {
      all.push_back({top, left, std::min(side, height - top), std::min(side, width - left)});
    }
  }
  return all;
}

at::Tensor part_of(const at::Tensor& image, const Square& square) {
  return image.narrow(-2, square.top, square.height).narrow(-1, square.left, square.width);
}

at::Tensor share_of(const model::Network& network, const at::Tensor& images, int64_t label) {
  return at::softmax(logits_from(network, inputs_of(network, images), 0).to(at::kFloat), 1).select(1, label);
}

// One image: [1, 3, height, width].
at::Tensor occlusion_map(const model::Network& network, const at::Tensor& image, int64_t label) {
  const c10::AutoGradMode no_gradients(false);
  const double whole = share_of(network, image, label).item<double>();
  const at::Tensor lost = at::zeros({image.size(2), image.size(3)}, at::kFloat);
  const at::Tensor times = at::zeros_like(lost);
  const std::vector<Square> squares = squares_over(image.size(2), image.size(3));
  for (size_t at = 0; at < squares.size(); at += kCoveredBatch) {
    const auto count = static_cast<int64_t>(std::min<size_t>(kCoveredBatch, squares.size() - at));
    const at::Tensor covered = image.repeat({count, 1, 1, 1});
    for (int64_t i = 0; i < count; ++i) part_of(covered[i], squares[at + static_cast<size_t>(i)]).zero_();  // the mean
    const at::Tensor shares = share_of(network, covered, label).to(at::kCPU);
    for (int64_t i = 0; i < count; ++i) {
      const Square& square = squares[at + static_cast<size_t>(i)];
      part_of(lost, square).add_(whole - shares[i].item<double>());
      part_of(times, square).add_(1);
    }
  }
  return (lost / times).clamp_min(0);
}

}  // namespace

HeatMethod heat_method_named(const std::string& name) {
  for (const HeatMethod method : {HeatMethod::grad_cam, HeatMethod::rollout, HeatMethod::occlusion}) {
    if (name_of(method) == name) return method;
  }
  throw Error(Blame::user, base::text("there is no heat map '", name, "'"), "grad_cam, rollout or occlusion");
}

std::string name_of(HeatMethod method) {
  return method == HeatMethod::grad_cam ? "grad_cam" : method == HeatMethod::rollout ? "rollout" : "occlusion";
}

HeatMethod fitting_method(const model::Network& network, const at::Tensor& images) {
  for (const auto& block : network.blocks()) {
    if (dynamic_cast<const model::AttentionBlock*>(block.get())) return HeatMethod::rollout;
  }
  return last_maps(network, images.narrow(0, 0, 1)).next > 0 ? HeatMethod::grad_cam : HeatMethod::occlusion;
}

at::Tensor heat_maps(const model::Network& network, const at::Tensor& images, const std::vector<int64_t>& classes,
                     HeatMethod method) {
  base::ensure(static_cast<int64_t>(classes.size()) == images.size(0), "a class for each image");
  if (method == HeatMethod::rollout) return rollout_maps(network, images);
  if (method == HeatMethod::grad_cam) {
    return gradient_maps(network, images, at::tensor(classes, at::kLong).to(images.device()));
  }
  const at::Tensor maps = at::zeros({images.size(0), images.size(2), images.size(3)}, at::kFloat);
  for (int64_t i = 0; i < images.size(0); ++i) {
    maps[i].copy_(occlusion_map(network, images.narrow(0, i, 1), classes[static_cast<size_t>(i)]));
  }
  return fitted(maps, images);
}

image::Image shown_view(const at::Tensor& image, const spec::Data& data) {
  const at::Tensor host = image.to(at::kCPU).to(at::kFloat).contiguous();  // [3, height, width]
  image::Image shown(host.size(2), host.size(1));
  const float* values = host.const_data_ptr<float>();
  const int64_t pixels = host.size(1) * host.size(2);
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < 3; ++c) {
      const auto channel = static_cast<size_t>(c);
      const double value = values[c * pixels + p] * data.std[channel] + data.mean[channel];
      shown.pixels[static_cast<size_t>(p * 3 + c)] =
          static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
    }
  }
  return shown;
}

}  // namespace lockstep::insight
