// SPDX-License-Identifier: Apache-2.0
// Driven by maskrcnn.py: each input line is a request, each output line its answer.
//   {"job": {...}, "weights": FILE, "probe": FILE, "out": FILE, "mode": "train" | "frozen"}
// Loads the weights, shows the network the fields of the probe file, and writes its detections, the losses of a
// training step and their gradients.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/objective/instances.h"
#include "lockstep/weights/safetensors.h"
#include "tests/oracles/torch_probe.h"

namespace {

using namespace lockstep;
using probe::read_tensor;
using probe::Writer;

void learn(const model::Network& network, const model::NamedTensors& fields, model::Mode mode, Writer& out) {
  const auto losses = objective::instance_losses(network.forward(fields, mode));
  at::Tensor all = losses.objectness + losses.anchor_box + losses.class_ + losses.box;
  out.add("loss_objectness", losses.objectness);
  out.add("loss_rpn_box_reg", losses.anchor_box);
  out.add("loss_classifier", losses.class_);
  out.add("loss_box_reg", losses.box);
  if (losses.mask.defined()) {
    out.add("loss_mask", losses.mask);
    all = all + losses.mask;
  }
  all.sum().backward();
  for (const model::Named& parameter : network.parameters()) {
    if (parameter.tensor.grad().defined()) out.add("grad." + parameter.name, parameter.tensor.grad());
  }
}

base::Json answer(const base::Json& request) {
  const spec::Job job = spec::parse_job(request.at("job"));
  const bool count_only = !request.contains("weights");
  model::Network network = model::make_network(job, count_only ? at::kMeta : at::kCPU);
  base::Json reply;
  reply["parameters"] = network.parameter_count();
  if (count_only) return reply;
  const model::LoadReport report = model::load_weights(network, request.at("weights").as_string());
  reply["fresh"] = base::Json::array_of(report.fresh);
  reply["ignored"] = base::Json::array_of(report.ignored);
  const weights::SafetensorsFile file(request.at("probe").as_string());
  model::NamedTensors fields;
  for (const auto& view : file.tensors()) fields.set(view.name, read_tensor(view));
  Writer out;
  {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : network.forward(fields, model::Mode::evaluate)) out.add("found." + name, tensor);
  }
  const bool frozen = request.at("mode").as_string() == "frozen";
  learn(network, fields, frozen ? model::Mode::frozen : model::Mode::train, out);
  out.write(request.at("out").as_string());
  return reply;
}

}  // namespace

int main() {
  return lockstep::probe::answer_lines(answer);
}
