// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/network_graph.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/verbs/export/operators.h"
#include "lockstep/verbs/export/recording.h"

namespace lockstep::verbs::exporting {
namespace {

using base::text;

constexpr const char* kInput = "image";

struct Pass {
  at::Tensor image;
  model::NamedTensors outputs;
  std::vector<Call> calls;
};

Pass run_once(const model::Network& network, const spec::ImageSize& size, int64_t batch) {
  Pass pass;
  pass.image = at::zeros({batch, 3, size.height, size.width});
  pass.calls = record_calls([&] { pass.outputs = network.forward({{kInput, pass.image}}, model::Mode::evaluate); });
  return pass;
}

// Bytes of an image as decoders give them -> what the network takes; the name of that.
std::string add_preprocessing(Graph& graph, const spec::Data& data) {
  std::vector<float> factor, offset;
  for (size_t c = 0; c < 3; ++c) {
    factor.push_back(static_cast<float>(1 / (255 * data.std[c])));
    offset.push_back(static_cast<float>(-data.mean[c] / data.std[c]));
  }
  const std::string pixels = graph.add("Cast", {kInput}, {{"to", static_cast<int64_t>(onnx::Type::float32)}});
  const std::string scaled = graph.add("Mul", {pixels, graph.constant(at::tensor(factor))});
  const std::string shown = graph.add("Add", {scaled, graph.constant(at::tensor(offset))});
  return graph.add("Transpose", {shown}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
}

std::vector<onnx::Dim> dims_of(const Sizes& sizes) {
  std::vector<onnx::Dim> dims;
  for (const Size& size : sizes) {
    if (!size.varies()) {
      dims.emplace_back(size.fixed);
    } else {
      dims.emplace_back(size.per_batch == 1 ? std::string("batch") : text(size.per_batch, " x batch"));
    }
  }
  return dims;
}

void check_exportable(const model::Network& network) {
  const auto& inputs = network.interface().inputs;
  if (inputs.size() == 1 && inputs.front() == kInput) return;
  throw base::Error(base::Blame::user,
                    text(network.name(), " is not exported to ONNX: it chooses among its own regions"),
                    "--to FILE.safetensors gives its weights under torchvision's names, which torchvision's own model "
                    "of that name loads and exports; `lockstep predict` runs it as it is");
}

}  // namespace

std::unique_ptr<Graph> network_graph(const model::Network& network, const spec::Job& job, const GraphOptions& options) {
  check_exportable(network);
  const c10::AutoGradMode no_gradients(false);
  const spec::ImageSize& size = job.data.image_size;
  const Pass first = run_once(network, size, kFirstBatch), second = run_once(network, size, kSecondBatch);
  auto graph = std::make_unique<Graph>(model::all_tensors(network), options.weights);
  onnx::Model& model = graph->model();
  model.name = network.name();
  graph->set_input(kInput);
  if (options.preprocess) {
    model.inputs = {{kInput, onnx::Type::uint8, {"batch", size.height, size.width, int64_t{3}}}};
    graph->bind(first.image, add_preprocessing(*graph, job.data));
  } else {
    model.inputs = {{kInput, onnx::Type::float32, {"batch", int64_t{3}, size.height, size.width}}};
    graph->bind(first.image, kInput);
  }
  for (const PairedCall& call : pair_calls(first.calls, second.calls)) translate(call, *graph);
  for (const auto& output : first.outputs) {
    base::ensure(graph->varies(output.tensor), text("output '", output.name, "' follows from the image"));
    graph->add_named("Identity", {graph->value(output.tensor)}, output.name);
    model.outputs.push_back({output.name, type_of(output.tensor.scalar_type()),
                             dims_of(pair_sizes(output.tensor.sizes(), second.outputs.at(output.name).sizes()))});
  }
  return graph;
}

}  // namespace lockstep::verbs::exporting
