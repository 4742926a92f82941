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
  int64_t image_size;
  Maker& maker;
};

Blocks linear_blocks(const Request& request);
Blocks mlp_blocks(const Request& request);
Blocks smallcnn_blocks(const Request& request);
Blocks resnet_blocks(const Request& request);

}  // namespace lockstep::model
