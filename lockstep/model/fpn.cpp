// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "lockstep/base/text.h"
#include "lockstep/model/rcnn.h"

namespace lockstep::model {
namespace {

class Fpn final : public Block {
 public:
  Fpn(const Request& request, const RcnnShape& shape, const std::vector<int64_t>& channels)
      : Block("fpn"), entries_(shape.masks ? 5 : 4) {
    const Site site{*this, request.maker, "backbone.fpn."};
    const int64_t out = shape.channels;
    for (size_t i = 0; i < channels.size(); ++i) {
      const ConvShape lateral{.in = channels[i], .out = out, .bias = true, .init = ConvInit::uniform_fan_in};
      inner_.emplace_back(site.in(base::text("inner_blocks.", i, ".0")), lateral);
    }
    for (size_t i = 0; i < channels.size(); ++i) {
      const ConvShape smooth{
          .in = out, .out = out, .kernel = 3, .padding = 1, .bias = true, .init = ConvInit::uniform_fan_in};
      layer_.emplace_back(site.in(base::text("layer_blocks.", i, ".0")), smooth);
    }
  }

  // The coarsest of the five maps has every second pixel of the one before it.
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    const size_t levels = inner_.size();
    std::vector<at::Tensor> maps(levels);
    at::Tensor above;  // of the next coarser level
    for (size_t level = levels; level-- > 0;) {
      const at::Tensor& from = level + 1 == levels ? input[0] : input[entries_ + level];
      at::Tensor inner = inner_[level](from);
      if (above.defined()) inner = inner + at::upsample_nearest2d(above, {inner.size(2), inner.size(3)});
      maps[level] = layer_[level](inner);
      above = inner;
    }
    maps.push_back(at::max_pool2d(maps.back(), 1, 2));
    Bundle output(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(entries_));
    output[0] = maps[0];
    output.insert(output.end(), maps.begin() + 1, maps.end());
    return output;
  }

 private:
  size_t entries_;  // the trunk's map and what the batch says
  std::vector<Conv2d> inner_, layer_;
};

}  // namespace

std::unique_ptr<Block> make_fpn(const Request& request, const RcnnShape& shape, const std::vector<int64_t>& channels) {
  return std::make_unique<Fpn>(request, shape, channels);
}

}  // namespace lockstep::model
