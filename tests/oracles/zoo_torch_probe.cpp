// SPDX-License-Identifier: Apache-2.0
// Driven by zoo.py and segment.py: each input line is a request, each output line its answer.
//   {"model": {...}, "image_size": 64, "weights": FILE, "probe": FILE, "out": FILE, "autocast": false}
// Tells mean and mean deviation of every fresh parameter; loads the weights, runs the images of the probe file in both
// modes, and writes logits, gradients and statistics.
//   {"model": {...}, "image_size": 224}
// Counts parameters only, on the meta device.
#include <ATen/ATen.h>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/step/precision.h"
#include "tests/oracles/torch_probe.h"

namespace {

using namespace lockstep;
using probe::read_tensor;
using probe::Writer;

spec::Model model_of(const base::Json& json) {
  base::Json document = base::parse_json(
      R"({"name": "zoo", "data": {"train": "synthetic", "samples": 2}, "training": {"global_batch": 2, "steps": 1}})",
      "zoo");
  document["model"] = json;
  return spec::parse_job(document).model;
}

// Both passes differentiate sum(logits * direction) + 0.3 * the same of each auxiliary head.
void pass(const model::Network& network, const weights::SafetensorsFile& file, model::Mode mode,
          spec::Precision precision, Writer& out) {
  const std::string prefix = mode == model::Mode::train ? "train." : "eval.";
  const at::Tensor direction = read_tensor(file, "direction");
  for (const model::Named& parameter : network.parameters()) at::Tensor(parameter.tensor).mutable_grad().reset();
  const model::NamedTensors output = [&] {
    const step::PassPrecision scope(network, precision, at::kCPU);
    return network.forward({{"image", read_tensor(file, "images")}}, mode);
  }();
  const at::Tensor logits = output.at(network.interface().outputs.front());
  at::Tensor loss = (logits * direction).sum();
  out.add(prefix + "logits", logits);
  for (size_t i = 1; i < output.size(); ++i) {
    const at::Tensor& auxiliary = (output.begin() + static_cast<std::ptrdiff_t>(i))->tensor;
    loss = loss + 0.3 * (auxiliary * direction).sum();
    out.add(prefix + "auxiliary" + std::to_string(i - 1), auxiliary);
  }
  loss.backward();
  for (const model::Named& parameter : network.parameters()) {
    if (parameter.tensor.grad().defined()) out.add(prefix + "grad." + parameter.name, parameter.tensor.grad());
  }
  for (const model::Named& buffer : network.buffers()) out.add(prefix + "buffer." + buffer.name, buffer.tensor);
}

base::Json answer(const base::Json& request) {
  const bool count_only = !request.contains("weights");
  model::Network network =
      model::make_network(model_of(request.at("model")), spec::image_size_of(request.at("image_size")), 1,
                          count_only ? at::kMeta : at::kCPU);
  base::Json reply;
  reply["parameters"] = network.parameter_count();
  if (count_only) return reply;
  for (const model::Named& parameter : network.parameters()) {
    const at::Tensor values = parameter.tensor.detach().to(at::kDouble);
    const at::Tensor mean = values.mean();
    reply["initial"][parameter.name] =
        base::Json::array_of(std::vector<double>{mean.item<double>(), (values - mean).abs().mean().item<double>()});
  }
  const model::LoadReport report = model::load_weights(network, request.at("weights").as_string());
  reply["fresh"] = report.fresh.size();
  reply["ignored"] = base::Json::array_of(report.ignored);
  const weights::SafetensorsFile file(request.at("probe").as_string());
  Writer out;
  const base::Json* autocast = request.find("autocast");
  const auto precision = autocast && autocast->as_bool() ? spec::Precision::amp : spec::Precision::fp32;
  pass(network, file, model::Mode::evaluate, precision, out);
  pass(network, file, model::Mode::train, precision, out);
  out.write(request.at("out").as_string());
  return reply;
}

}  // namespace

int main() {
  return lockstep::probe::answer_lines(answer);
}
