// SPDX-License-Identifier: Apache-2.0
// Driven by onnx.py: each input line is a request, each output line its answer.
//   {"names": true}
// Tells the names of all networks.
//   {"job": {...}, "batch": 3, "weights": FILE, "out": FILE}
// Gives the job's network lively weights, writes them, and what it makes of a batch of random images (or radar frames).
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/task/task.h"
#include "tests/oracles/torch_probe.h"

namespace {

using namespace lockstep;
using probe::Writer;

void fill(const at::Tensor& tensor, double low, double high) {
  at::Tensor(tensor.detach()).uniform_(low, high);
}

// No term of a layer can hide: norms are not 1 and 0, layer scales not 1e-6.
void randomise(const model::Network& network) {
  for (const auto& buffer : network.buffers()) {
    const bool variance = buffer.name.ends_with("running_var");
    fill(buffer.tensor, variance ? 0.5 : -0.1, variance ? 1.5 : 0.1);
  }
  for (const auto& [name, tensor] : network.parameters()) {
    if (name.ends_with("layer_scale")) {
      fill(tensor, 0.1, 0.5);
    } else if (name.ends_with("token")) {
      fill(tensor, -0.2, 0.2);
    } else if (tensor.dim() == 1) {
      fill(tensor, name.ends_with(".weight") ? 0.5 : -0.2, name.ends_with(".weight") ? 1.5 : 0.2);
    } else if (tensor.dim() == 4) {
      const double spread = std::sqrt(2. / static_cast<double>(tensor[0].numel()));
      at::Tensor(tensor.detach()).normal_(0, spread);
    }
  }
}

// Deep random networks blow up: their logits are brought to about one.
void calm(const model::Network& network, const model::NamedTensors& input) {
  const auto& head = *network.blocks().back();
  if (network.interface().outputs.front() != "output") return;
  const double largest = network.forward(input, model::Mode::evaluate).at("output").abs().max().item<double>();
  for (const auto& parameter : head.parameters) {
    const bool last =
        std::find(head.classifier.begin(), head.classifier.end(), parameter.name) != head.classifier.end();
    if (last && largest > 1) at::Tensor(parameter.tensor.detach()).div_(largest);
  }
}

base::Json answer(const base::Json& request) {
  base::Json reply;
  if (request.contains("names")) {
    reply["names"] = base::Json::array_of(model::network_names());
    return reply;
  }
  spec::Job job = spec::parse_job(request.at("job"));
  const auto task = task::make_task(job, std::vector<std::string>(static_cast<size_t>(job.model.classes), "c"));
  job.model.classes = task->num_outputs();
  const c10::AutoGradMode no_gradients(false);
  at::manual_seed(5);
  const model::Network network = model::make_network(job);
  randomise(network);
  const auto& size = job.data.image_size;
  const int64_t batch = request.at("batch").as_int();
  const bool of_frames = network.interface().inputs.front() == "frames";
  const at::Tensor values = of_frames ? at::rand({batch, job.nowcast.inputs, 1, size.height, size.width})
                                      : at::randn({batch, 3, size.height, size.width});
  const model::NamedTensors input{{network.interface().inputs.front(), values}};
  calm(network, input);
  model::save_weights(network, request.at("weights").as_string());
  Writer out;
  out.add("input", values);
  for (const auto& output : network.forward(input, model::Mode::evaluate)) {
    out.add("output." + output.name, output.tensor);
  }
  out.write(request.at("out").as_string());
  reply["parameters"] = network.parameter_count();
  return reply;
}

}  // namespace

int main() {
  return lockstep::probe::answer_lines(answer);
}
