// SPDX-License-Identifier: Apache-2.0
// Driven by maskrcnn.py: each input line is a request, each output line its answer.
//   {"job": {...}, "weights": FILE, "probe": FILE, "out": FILE, "mode": "train" | "frozen"}
// Loads the weights, shows the network the fields of the probe file, and writes its detections, the losses of a
// training step and their gradients.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <iostream>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/objective/instances.h"
#include "lockstep/weights/safetensors.h"

namespace {

using namespace lockstep;

at::Tensor read_tensor(const weights::TensorView& view) {
  const auto type = view.dtype == weights::Dtype::F32   ? at::kFloat
                    : view.dtype == weights::Dtype::I64 ? at::kLong
                                                        : at::kByte;
  at::Tensor tensor = at::empty(view.shape, type);
  base::ensure(tensor.nbytes() == view.bytes.size(), "the probe file holds floats, integers and bytes");
  std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

class Writer {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor& kept = kept_.emplace_back(tensor.detach().to(at::kFloat).contiguous().clone());
    const auto* data = static_cast<const std::byte*>(kept.data_ptr());
    views_.push_back({name, weights::Dtype::F32, kept.sizes().vec(), {data, kept.nbytes()}});
  }
  void write(const std::string& path) { weights::write_safetensors(path, views_); }

 private:
  std::vector<at::Tensor> kept_;
  std::vector<weights::TensorView> views_;
};

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
  const weights::SafetensorsFile probe(request.at("probe").as_string());
  model::NamedTensors fields;
  for (const auto& view : probe.tensors()) fields.set(view.name, read_tensor(view));
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
  at::set_num_threads(1);
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::cout << answer(base::parse_json(line, "request")).dump(-1) << std::endl;
    } catch (const std::exception& error) {
      base::Json reply;
      reply["error"] = error.what();
      std::cout << reply.dump(-1) << std::endl;
    }
  }
  return 0;
}
