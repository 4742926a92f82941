// SPDX-License-Identifier: Apache-2.0
// Driven by fastbox.py: each input line is a request, each output line its answer.
//   {"model": {...}, "image_size": [64, 96], "weights": FILE, "probe": FILE, "out": FILE}
// Loads the weights, runs the images of the probe file against its targets in both modes, and writes what the network
// says, the parts of the loss and the gradient of their sum.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>
#include <iostream>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/objective/objective.h"
#include "lockstep/weights/safetensors.h"

namespace {

using namespace lockstep;

spec::Job job_of(const base::Json& request) {
  base::Json document = base::parse_json(
      R"({"name": "fastbox", "task": "detect", "data": {"train": "synthetic", "samples": 2},
          "training": {"global_batch": 2, "steps": 1}})",
      "fastbox");
  document["model"] = request.at("model");
  document["data"]["image_size"] = request.at("image_size");
  return spec::parse_job(document);
}

at::Tensor read_tensor(const weights::SafetensorsFile& file, const char* name) {
  const weights::TensorView* view = file.find(name);
  base::ensure(view != nullptr && view->dtype == weights::Dtype::F32, "the probe file holds the tensor");
  at::Tensor tensor = at::empty(view->shape);
  std::memcpy(tensor.data_ptr(), view->bytes.data(), view->bytes.size());
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

void pass(const model::Network& network, const objective::Objective& objective, const weights::SafetensorsFile& probe,
          model::Mode mode, Writer& out) {
  const std::string prefix = mode == model::Mode::train ? "train." : "eval.";
  for (const model::Named& parameter : network.parameters()) at::Tensor(parameter.tensor).mutable_grad().reset();
  model::NamedTensors fields;
  for (const char* name : {"image", "object", "box", "mask"}) fields.set(name, read_tensor(probe, name));
  const model::NamedTensors outputs = network.forward(fields, mode);
  for (const model::Named& output : outputs) out.add(prefix + "output." + output.name, output.tensor);
  const auto sums = objective.sums(outputs, fields);
  const auto names = objective.figures();
  for (size_t i = 0; i < sums.size(); ++i) out.add(prefix + "loss." + names[i], sums[i]);
  objective.loss(outputs, fields, {}).backward();
  for (const model::Named& parameter : network.parameters()) {
    if (parameter.tensor.grad().defined()) out.add(prefix + "grad." + parameter.name, parameter.tensor.grad());
  }
}

base::Json answer(const base::Json& request) {
  spec::Job job = job_of(request);
  job.model.classes = 2;
  model::Network network = model::make_network(job.model, job.data.image_size, 1);
  const model::LoadReport report = model::load_weights(network, request.at("weights").as_string());
  const weights::SafetensorsFile probe(request.at("probe").as_string());
  Writer out;
  const auto objective = objective::make_objective(job);
  pass(network, *objective, probe, model::Mode::evaluate, out);
  pass(network, *objective, probe, model::Mode::train, out);
  out.write(request.at("out").as_string());
  base::Json reply;
  reply["parameters"] = network.parameter_count();
  reply["fresh"] = base::Json::array_of(report.fresh);
  reply["ignored"] = base::Json::array_of(report.ignored);
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
