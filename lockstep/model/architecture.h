// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/model/layers.h"
#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

// Inside of the model room: one function a family gives the blocks of the network that `request.model` names.
namespace lockstep::model {

using Blocks = std::vector<std::unique_ptr<Block>>;

struct Request {
  const spec::Model& model;
  spec::ImageSize image_size;
  Maker& maker;
  spec::Instances instances = {};  // of task instances
  spec::Nowcast nowcast = {};      // of task nowcast
  spec::Caption caption = {};      // of task caption
  spec::Text text = {};            // of task text
};

// The blocks of a classifier in front of its pooling, for networks that see more in its maps than a class.
struct Trunk {
  struct Map {
    int64_t stride;     // pixels of the image to one of the map
    std::string block;  // that gives it, the last of this stride
    int64_t channels;
  };
  Blocks blocks;
  std::vector<Map> maps;  // by stride

  const Map& map_of(int64_t stride) const;  // REQUIRES: there is one
  void note_map(Map map);                   // in the place of an earlier one of its stride; none of stride 2
};
Trunk resnet_trunk(const Request& request, const std::string& name);  // strides 4 to 32; takes model.width
Trunk vgg16_trunk(const Request& request);                            // strides 1 to 32
Trunk googlenet_trunk(const Request& request);                        // strides 8 to 32
Trunk mobilenet_trunk(const Request& request);                        // strides 4 to 32
Trunk efficientnet_trunk(const Request& request, double path_rate);   // likewise; `path_rate`: of drop_path

// The two last blocks of most networks. "pool" gives one vector a sample, so that cached features stay small.
class GlobalPool final : public PlainBlock {
 public:
  GlobalPool() : PlainBlock("pool") {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override;
};

struct HeadOptions {
  std::string prefix;  // of the parameters' names
  double dropout = 0;
  LinearInit init = LinearInit::torch_default;
};

class Head final : public PlainBlock {
 public:
  Head(const Request& request, int64_t in, const HeadOptions& options);
  at::Tensor forward(const at::Tensor& input, Mode mode) override;

 private:
  double dropout_;
  Linear linear_;
};

Blocks linear_blocks(const Request& request);
Blocks mlp_blocks(const Request& request);
Blocks smallcnn_blocks(const Request& request);
Blocks resnet_blocks(const Request& request);
Blocks densenet_blocks(const Request& request);
Blocks googlenet_blocks(const Request& request);
Blocks vit_blocks(const Request& request);
Blocks efficientnet_blocks(const Request& request);
Blocks mobilenet_blocks(const Request& request);
Blocks squeezenet_blocks(const Request& request);
Blocks fastbox_blocks(const Request& request);
Blocks convnext_blocks(const Request& request);
Blocks rcnn_blocks(const Request& request);
Blocks convlstm_blocks(const Request& request);
Blocks rainnet_blocks(const Request& request);
Blocks fcdensenet_blocks(const Request& request);
Blocks attend_blocks(const Request& request);
Blocks hashed_linear_blocks(const Request& request);

}  // namespace lockstep::model
