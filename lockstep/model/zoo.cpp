// SPDX-License-Identifier: Apache-2.0
// The table of networks: names, families, and which keys of `model` each family understands.
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"

namespace lockstep::model {
namespace {

using base::Blame;
using base::Error;
using base::text;

struct Family {
  Blocks (*build)(const Request&);
  std::vector<std::string> names;
  std::vector<std::string> keys;  // overrides in `model` that it takes; any other is an error, never ignored
  Interface interface = {};
};

Interface rcnn_interface(bool masks) {
  Interface all{.inputs = {"image", "shown", "boxes", "labels"},
                .outputs = {"boxes", "scores", "labels"},
                .exact = {"shown", "boxes", "labels"},
                .training_outputs = {"objectness", "objectness_targets", "anchors_valid", "anchor_deltas",
                                     "anchor_targets", "class_logits", "class_targets", "box_deltas", "box_targets"}};
  if (!masks) return all;
  all.inputs.emplace_back("masks");
  all.exact.emplace_back("masks");
  all.outputs.emplace_back("masks");
  for (const char* name : {"mask_logits", "mask_targets", "masks_valid"}) all.training_outputs.emplace_back(name);
  return all;
}

const std::vector<Family>& families() {
  static const Interface kFastBox{.outputs = {"confidence", "box", "confidence2", "delta"}};
  static const Interface kAttend{.inputs = {"image", "tokens"},
                                 .outputs = {"words", "log_probabilities", "attention", "given"},
                                 .exact = {"tokens"},
                                 .training_outputs = {"word_logits", "attention"}};
  static const std::vector<Family> table = {
      {linear_blocks, {"linear"}, {}},
      {mlp_blocks, {"mlp"}, {"width", "depth", "dropout"}},
      {smallcnn_blocks, {"smallcnn"}, {"width", "dropout"}},
      {resnet_blocks, {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}, {"width"}},
      {densenet_blocks, {"densenet121", "densenet161", "densenet169", "densenet201"}, {"width", "dropout"}},
      {googlenet_blocks, {"googlenet"}, {"dropout"}, {.outputs = {"output", "aux1", "aux2"}}},
      {vit_blocks,
       {"vit_tiny_patch16_224", "vit_small_patch32_224", "vit_small_patch16_224", "vit_base_patch32_224",
        "vit_base_patch16_224", "vit_large_patch32_224", "vit_large_patch16_224", "vit_huge_patch14_224",
        "vit_giant_patch14_224"},
       {"width", "depth", "heads", "patch", "mlp_ratio", "dropout", "drop_path"}},
      {efficientnet_blocks, {"efficientnet_lite0"}, {"dropout", "drop_path"}},
      {mobilenet_blocks, {"mobilenet_v2"}, {"dropout"}},
      {squeezenet_blocks, {"squeezenet1_0", "squeezenet1_1"}, {"dropout"}},
      {fastbox_blocks, {"fastbox_resnet18", "fastbox_resnet50"}, {"width", "dropout"}, kFastBox},
      {fastbox_blocks, {"fastbox_vgg16", "fastbox_googlenet"}, {"dropout"}, kFastBox},
      {convnext_blocks, {"convnext_tiny", "convnext_small", "convnext_base", "convnext_large"}, {"drop_path"}},
      {rcnn_blocks,
       {"fasterrcnn_resnet18_fpn", "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet101_fpn", "fasterrcnn_mobilenet_v2_fpn",
        "fasterrcnn_efficientnet_lite0_fpn"},
       {"width"},
       rcnn_interface(false)},
      {rcnn_blocks,
       {"maskrcnn_resnet18_fpn", "maskrcnn_resnet50_fpn", "maskrcnn_resnet101_fpn", "maskrcnn_mobilenet_v2_fpn",
        "maskrcnn_efficientnet_lite0_fpn"},
       {"width"},
       rcnn_interface(true)},
      {convlstm_blocks, {"convlstm"}, {"patch"}, {.inputs = {"frames"}, .outputs = {"forecast"}}},
      {rainnet_blocks, {"rainnet"}, {"width", "dropout"}, {.inputs = {"frames"}, .outputs = {"forecast"}}},
      {fcdensenet_blocks,
       {"fcdensenet56", "fcdensenet67", "fcdensenet103"},
       {"width", "dropout"},
       {.outputs = {"logit_map"}}},
      {attend_blocks, {"attend_resnet18", "attend_resnet50", "attend_resnet101"}, {"width", "dropout"}, kAttend},
      {attend_blocks, {"attend_vgg16", "attend_mobilenet_v2", "attend_efficientnet_lite0"}, {"dropout"}, kAttend},
      {hashed_linear_blocks, {"hashed_linear"}, {"width", "dropout"}, {.inputs = {"tokens"}, .exact = {"tokens"}}},
  };
  return table;
}

const Family& find_family(const std::string& name) {
  for (const Family& family : families()) {
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) return family;
  }
  throw Error(Blame::user, text("model.name: there is no network '", name, "'"),
              base::did_you_mean(name, network_names()));
}

// Every number of the section `model` but the class count overrides the architecture: the field table of spec is the
// only list of them.
void check_overrides(const spec::Model& model, const Family& family) {
  spec::Job job;
  job.model = model;
  const base::Json document = spec::to_json(job);
  for (const auto& member : document.at("model").members()) {
    const std::string& key = member.key;
    const base::Json& value = member.value;
    if (key == "classes" || !value.is_number() || value.as_double() == 0) continue;
    const bool known = std::find(family.keys.begin(), family.keys.end(), key) != family.keys.end();
    if (known && value.as_double() > 0) continue;
    const std::string takes = family.keys.empty() ? "nothing" : base::join(family.keys, ", ");
    throw Error(Blame::user,
                text("model.", key, ": ", model.name, known ? " needs a positive value" : " cannot change this"),
                text(model.name, " takes ", takes, "; leave out model.", key));
  }
}

}  // namespace

const Trunk::Map& Trunk::map_of(int64_t stride) const {
  const auto found = std::find_if(maps.begin(), maps.end(), [&](const Map& map) { return map.stride == stride; });
  base::ensure(found != maps.end(), "the trunk has a map of the stride that is asked for");
  return *found;
}

void Trunk::note_map(Map map) {
  if (map.stride < 4) return;
  if (!maps.empty() && maps.back().stride == map.stride) maps.pop_back();
  maps.push_back(std::move(map));
}

at::Tensor GlobalPool::forward(const at::Tensor& input, Mode /*mode*/) {
  return global_average(input);
}

Head::Head(const Request& request, int64_t in, const HeadOptions& options)
    : PlainBlock("head"),
      dropout_(options.dropout),
      linear_(make_classifier({*this, request.maker, options.prefix}, in, request.model.classes, options.init)) {}

at::Tensor Head::forward(const at::Tensor& input, Mode mode) {
  return linear_(dropout(*this, input, dropout_, mode));
}

Network make_network(const spec::Job& job, at::Device device, Values values) {
  const spec::Model& model = job.model;
  const Family& family = find_family(model.name);
  check_overrides(model, family);
  base::ensure(model.classes > 0 && job.data.image_size.pixels() > 0,
               "class count and image size are known when a network is made");
  Maker maker(job.training.seed, device, values, model.layout);
  Network network(model.name,
                  family.build({model, job.data.image_size, maker, job.instances, job.nowcast, job.caption, job.text}),
                  memory_format(model.layout), family.interface);
  network.twins_from([=] { return make_network(job, device, Values::none); });
  return network;
}

const Interface& interface_of(const std::string& network) {
  return find_family(network).interface;
}

Network make_network(const spec::Model& model, const spec::ImageSize& image_size, int64_t seed, at::Device device,
                     Values values) {
  spec::Job job;
  job.model = model;
  job.data.image_size = image_size;
  job.training.seed = seed;
  return make_network(job, device, values);
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.insert(names.end(), family.names.begin(), family.names.end());
  return names;
}

}  // namespace lockstep::model
