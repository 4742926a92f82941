// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/rcnn.h"

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::model {
namespace {

constexpr int64_t kCoarsest = 32;  // stride of the trunk's last map
constexpr const char* kBody = "backbone.body.";

// Sends a map of the trunk along to the pyramid. The trunk goes on from an alias of it: so the gradients of the next
// block are added up before the pyramid's joins them, whether that block is recomputed as a whole or not.
class KeepMap final : public Block {
 public:
  explicit KeepMap(int64_t stride) : Block(base::text("map", stride)) {}
  Bundle run(const Bundle& input, Mode /*mode*/) override {
    Bundle output = input;
    output[0] = input[0].alias();
    output.push_back(input[0]);
    return output;
  }
};

// torchvision keeps a trunk's layers by their names, those of MobileNetV2 by their numbers among its "features".
void rename_tensors(Block& block) {
  const auto in_body = [](const std::string& name) {
    constexpr std::string_view kList = "features.";
    return kBody + (name.starts_with(kList) ? name.substr(kList.size()) : name);
  };
  for (Named& parameter : block.parameters) parameter.name = in_body(parameter.name);
  for (Named& buffer : block.buffers) buffer.name = in_body(buffer.name);
}

Trunk rcnn_trunk(const Request& request, const std::string& name) {
  if (name == "mobilenet_v2") return mobilenet_trunk(request);
  if (name == "efficientnet_lite0") return efficientnet_trunk(request, /*path_rate=*/0);
  return resnet_trunk(request, name);
}

void check_canvas(const Request& request) {
  const spec::ImageSize& size = request.image_size;
  if (size.height % kCoarsest == 0 && size.width % kCoarsest == 0) return;
  const auto up = [](int64_t side) { return (side + kCoarsest - 1) / kCoarsest * kCoarsest; };
  throw base::Error(base::Blame::user,
                    base::text("data.image_size: ", to_text(size), " is no multiple of ", kCoarsest,
                               ", the coarsest map of ", request.model.name),
                    base::text("use [", up(size.height), ", ", up(size.width), "]: images are padded"));
}

}  // namespace

Blocks rcnn_blocks(const Request& request) {
  check_canvas(request);
  const std::string& name = request.model.name;  // maskrcnn_resnet50_fpn
  const size_t from = name.find('_') + 1;
  const int64_t width = request.model.width > 0 ? request.model.width : 64;
  const RcnnShape shape{.channels = 4 * width,
                        .hidden = 16 * width,
                        .classes = request.model.classes + 1,
                        .masks = name.starts_with("maskrcnn"),
                        .image_size = request.image_size,
                        .instances = request.instances};
  Trunk trunk = rcnn_trunk(request, name.substr(from, name.rfind('_') - from));
  Blocks blocks;
  std::vector<int64_t> channels;
  for (const auto& map : trunk.maps) channels.push_back(map.channels);
  size_t next = 0;
  for (auto& block : trunk.blocks) {
    const bool is_map = block->name() == trunk.maps[next].block;
    rename_tensors(*block);
    blocks.push_back(std::move(block));
    if (!is_map || trunk.maps[next].stride == kCoarsest) continue;
    blocks.push_back(std::make_unique<KeepMap>(trunk.maps[next].stride));
    ++next;
  }
  blocks.push_back(make_fpn(request, shape, channels));
  blocks.push_back(make_rpn(request, shape));
  blocks.push_back(make_box_head(request, shape));
  blocks.push_back(make_rcnn_head(request, shape));
  return blocks;
}

}  // namespace lockstep::model
