// SPDX-License-Identifier: Apache-2.0
// Driven by fastbox.py: each input line is a request, each output line its answer.
//   {"model": {...}, "image_size": [64, 96], "weights": FILE, "probe": FILE, "out": FILE}
// Loads the weights, runs the images of the probe file against its targets in both modes, and writes what the network
// says, the parts of the loss and the gradient of their sum.
#include <ATen/ATen.h>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/objective/objective.h"
#include "lockstep/weights/safetensors.h"
#include "tests/oracles/torch_probe.h"

namespace {

using namespace lockstep;
using probe::read_tensor;
using probe::Writer;

spec::Job job_of(const base::Json& request) {
  base::Json document = base::parse_json(
      R"({"name": "fastbox", "task": "detect", "data": {"train": "synthetic", "samples": 2},
          "training": {"global_batch": 2, "steps": 1}})",
      "fastbox");
  document["model"] = request.at("model");
  document["data"]["image_size"] = request.at("image_size");
  return spec::parse_job(document);
}

void pass(const model::Network& network, const objective::Objective& objective, const weights::SafetensorsFile& file,
          model::Mode mode, Writer& out) {
  const std::string prefix = mode == model::Mode::train ? "train." : "eval.";
  for (const model::Named& parameter : network.parameters()) at::Tensor(parameter.tensor).mutable_grad().reset();
  model::NamedTensors fields;
  for (const char* name : {"image", "object", "box", "mask"}) fields.set(name, read_tensor(file, name));
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
  const weights::SafetensorsFile file(request.at("probe").as_string());
  Writer out;
  const auto objective = objective::make_objective(job);
  pass(network, *objective, file, model::Mode::evaluate, out);
  pass(network, *objective, file, model::Mode::train, out);
  out.write(request.at("out").as_string());
  base::Json reply;
  reply["parameters"] = network.parameter_count();
  reply["fresh"] = base::Json::array_of(report.fresh);
  reply["ignored"] = base::Json::array_of(report.ignored);
  return reply;
}

}  // namespace

int main() {
  return lockstep::probe::answer_lines(answer);
}
