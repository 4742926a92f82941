// SPDX-License-Identifier: Apache-2.0
// VGG-16 (Simonyan and Zisserman 2014, arXiv 1409.1556), its thirteen convolutions as torchvision has them.
#include <ATen/ops/max_pool2d.h>

#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

struct VggRow {
  const char* name;
  int64_t in, out;
  std::vector<int64_t> layers;  // torchvision's numbers of the convolutions
};

// Halves the map of the stage before it, then convolves; the first stage sees the image as it is.
class VggStage final : public PlainBlock {
 public:
  VggStage(const VggRow& row, Maker& maker) : PlainBlock(row.name), halves_(name() != "stem") {
    for (const int64_t layer : row.layers) {
      const int64_t in = convolutions_.empty() ? row.in : row.out;
      const ConvShape shape{.in = in, .out = row.out, .kernel = 3, .padding = 1, .bias = true};
      convolutions_.emplace_back(Site{*this, maker, base::text("features.", layer, ".")}, shape);
    }
  }
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override {
    at::Tensor value = halves_ ? at::max_pool2d(input, 2, 2) : input;
    for (const Conv2d& convolution : convolutions_) value = convolution(value).relu_();
    return value;
  }

 private:
  bool halves_;
  std::vector<Conv2d> convolutions_;
};

}  // namespace

Trunk vgg16_trunk(const Request& request) {
  const VggRow rows[] = {{"stem", 3, 64, {0, 2}},           {"conv2", 64, 128, {5, 7}},
                         {"conv3", 128, 256, {10, 12, 14}}, {"conv4", 256, 512, {17, 19, 21}},
                         {"conv5", 512, 512, {24, 26, 28}}, {"pool5", 512, 512, {}}};
  Trunk trunk;
  for (const VggRow& row : rows) {
    const int64_t stride = int64_t{1} << trunk.blocks.size();
    trunk.blocks.push_back(std::make_unique<VggStage>(row, request.maker));
    trunk.maps.push_back({stride, row.name, row.out});
  }
  return trunk;
}

}  // namespace lockstep::model
