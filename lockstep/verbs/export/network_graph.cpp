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

constexpr const char *kImage = "image", *kFrames = "frames";  // what an exported network takes: one of the two

struct Pass {
  at::Tensor input;
  model::NamedTensors outputs;
  std::vector<Call> calls;
};

const std::string& input_of(const model::Network& network) {
  return network.interface().inputs.front();
}

// Without the batch.
std::vector<int64_t> input_sizes(const model::Network& network, const spec::Job& job) {
  const spec::ImageSize& size = job.data.image_size;
  if (input_of(network) == kImage) return {3, size.height, size.width};
  return {job.nowcast.inputs, 1, size.height, size.width};
}

Pass run_once(const model::Network& network, const spec::Job& job, int64_t batch) {
  Pass pass;
  std::vector<int64_t> sizes = input_sizes(network, job);
  sizes.insert(sizes.begin(), batch);
  pass.input = at::zeros(sizes);
  pass.calls = model::record_calls([&] {
    pass.outputs = network.forward({{input_of(network), pass.input}}, model::Mode::evaluate);
  });
  return pass;
}

// Bytes of an image as decoders give them -> what the network takes; the name of that.
std::string add_preprocessing(Graph& graph, const spec::Data& data) {
  std::vector<float> factor, offset;
  for (size_t c = 0; c < 3; ++c) {
    factor.push_back(static_cast<float>(1 / (255 * data.std[c])));
    offset.push_back(static_cast<float>(-data.mean[c] / data.std[c]));
  }
  const std::string pixels = graph.add("Cast", {kImage}, {{"to", static_cast<int64_t>(onnx::Type::float32)}});
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

void check_exportable(const model::Network& network, const GraphOptions& options) {
  const auto& inputs = network.interface().inputs;
  if (inputs.size() == 1 && inputs.front() == kFrames && options.preprocess) {
    throw base::Error(base::Blame::user, text("--preprocess: ", network.name(), " takes frames of a radar, no image"),
                      "leave it out; docs/export.md says what the numbers of a frame are");
  }
  if (inputs.size() == 1 && (inputs.front() == kImage || inputs.front() == kFrames)) return;
  if (inputs.front() == "tokens") {
    throw base::Error(
        base::Blame::user,
        text(network.name(), " is not exported to ONNX: it takes hashed n-grams, which only lockstep makes"),
        "--to FILE.safetensors gives its weights; `lockstep predict` runs it as it is");
  }
  if (inputs.back() == "tokens") {
    throw base::Error(
        base::Blame::user,
        text(network.name(), " is not exported to ONNX: it searches for its words one after the other"),
        "`lockstep predict` and `lockstep serve` run it as it is; --to FILE.safetensors gives its weights");
  }
  throw base::Error(base::Blame::user,
                    text(network.name(), " is not exported to ONNX: it chooses among its own regions"),
                    "--to FILE.safetensors gives its weights under torchvision's names, which torchvision's own model "
                    "of that name loads and exports; `lockstep predict` runs it as it is");
}

}  // namespace

std::unique_ptr<Graph> network_graph(const model::Network& network, const spec::Job& job, const GraphOptions& options) {
  check_exportable(network, options);
  const c10::AutoGradMode no_gradients(false);
  const spec::ImageSize& size = job.data.image_size;
  const Pass first = run_once(network, job, kFirstBatch), second = run_once(network, job, kSecondBatch);
  auto graph = std::make_unique<Graph>(model::all_tensors(network), options.weights);
  onnx::Model& model = graph->model();
  model.name = network.name();
  const std::string& input = input_of(network);
  graph->set_input(input);
  if (options.preprocess) {
    model.inputs = {{input, onnx::Type::uint8, {"batch", size.height, size.width, int64_t{3}}}};
    graph->bind(first.input, add_preprocessing(*graph, job.data));
  } else {
    model.inputs = {{input, onnx::Type::float32, dims_of(pair_sizes(first.input.sizes(), second.input.sizes()))}};
    graph->bind(first.input, input);
  }
  for (const PairedCall& call : pair_calls(first.calls, second.calls)) translate(call, *graph);
  for (const auto& output : first.outputs) {
    base::ensure(graph->varies(output.tensor), text("output '", output.name, "' follows from the input"));
    graph->add_named("Identity", {graph->value(output.tensor)}, output.name);
    model.outputs.push_back({output.name, type_of(output.tensor.scalar_type()),
                             dims_of(pair_sizes(output.tensor.sizes(), second.outputs.at(output.name).sizes()))});
  }
  return graph;
}

}  // namespace lockstep::verbs::exporting
