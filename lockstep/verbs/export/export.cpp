// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/export.h"

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/onnx/file.h"
#include "lockstep/verbs/export/network_graph.h"
#include "lockstep/version.h"
#include "lockstep/weights/preprocessing.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::verbs::exporting {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

std::string describe(const std::vector<onnx::Value>& values) {
  std::string words;
  for (const onnx::Value& value : values) {
    std::string dims;
    for (const onnx::Dim& dim : value.dims) {
      const auto* size = std::get_if<int64_t>(&dim);
      dims += text(dims.empty() ? "" : ", ", size ? text(*size) : std::get<std::string>(dim));
    }
    words += text(words.empty() ? "" : "; ", value.name, ": ", value.type == onnx::Type::uint8 ? "uint8" : "float32",
                  " [", dims, "]");
  }
  return words;
}

Exported write_onnx(const training::Trained& trained, const ExportOptions& options) {
  const auto graph = network_graph(trained.network, trained.job,
                                   {options.fp16 ? Graph::Weights::fp16 : Graph::Weights::fp32, options.preprocess});
  onnx::Model& model = graph->model();
  model.producer_version = LOCKSTEP_VERSION;
  model.description = text(trained.job.name, ": ", trained.network.name(), " for ", name_of(trained.job.task));
  model.metadata = metadata_of(trained, options);
  const onnx::Written written = onnx::write_file(options.to, model);
  Exported exported{written.file, written.data, static_cast<int64_t>(written.bytes)};
  exported.tensors = static_cast<int64_t>(model.tensors.size());
  exported.nodes = static_cast<int64_t>(model.nodes.size());
  exported.input = describe(model.inputs);
  exported.outputs = describe(model.outputs);
  if (trained.job.evaluation.views != spec::Views::center) {
    exported.notes.push_back(
        text("evaluation.views is ", name_of(trained.job.evaluation.views), ": the file sees one view of an image"));
  }
  const auto precision = trained.job.training.precision;
  if (precision == spec::Precision::bf16 || precision == spec::Precision::amp) {
    exported.notes.push_back(text("training.precision is ", name_of(precision), ": the file computes in fp32"));
  }
  return exported;
}

weights::Dtype dtype_of(const at::Tensor& tensor, const std::string& name) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return weights::Dtype::F32;
    case at::kHalf:
      return weights::Dtype::F16;
    case at::kLong:
      return weights::Dtype::I64;
    default:
      throw Error(Blame::bug, text("'", name, "' has a type that is not exported"));
  }
}

Exported write_weights(const training::Trained& trained, const ExportOptions& options) {
  if (options.preprocess) {
    throw Error(Blame::user, "--preprocess: a file of weights has no graph to do it in", "--to FILE.onnx");
  }
  weights::TensorMetadata metadata{{"format", "pt"}, {"model", trained.job.model.name}, {"lockstep", LOCKSTEP_VERSION}};
  metadata["classes"] = Json::array_of(trained.classes).dump(-1);
  if (!options.licence.empty()) metadata["licence"] = options.licence;
  weights::add_to(metadata, weights::preprocessing_of(trained.job.data));
  std::vector<at::Tensor> kept;
  std::vector<weights::TensorView> views;
  uint64_t bytes = 0;
  for (const auto& entry : model::all_tensors(trained.network)) {
    const at::Tensor half = options.fp16 ? halved(entry.tensor) : at::Tensor();
    kept.push_back(half.defined() ? half : entry.tensor.detach().to(at::kCPU).contiguous());
    const at::Tensor& last = kept.back();
    views.push_back({entry.name,
                     dtype_of(last, entry.name),
                     last.sizes().vec(),
                     {static_cast<const std::byte*>(last.const_data_ptr()), last.nbytes()}});
    bytes += last.nbytes();
  }
  weights::write_safetensors(options.to, views, metadata);
  Exported exported{options.to, {}, static_cast<int64_t>(bytes)};
  exported.tensors = static_cast<int64_t>(views.size());
  return exported;
}

}  // namespace

FileFormat file_format(const base::Path& file) {
  if (file.extension() == ".onnx") return FileFormat::onnx;
  if (file.extension() == ".safetensors") return FileFormat::safetensors;
  throw Error(Blame::user, text("--to ", file.string(), ": of which kind is it to be?"),
              "name it .onnx or .safetensors");
}

std::vector<std::pair<std::string, std::string>> metadata_of(const training::Trained& trained,
                                                             const ExportOptions& options) {
  const spec::Data& data = trained.job.data;
  const task::NetworkWords words = trained.task->network_words();
  std::vector<std::pair<std::string, std::string>> metadata = {
      {"lockstep.version", LOCKSTEP_VERSION},
      {"lockstep.commit", std::string(base::build_commit())},
      {"lockstep.job", trained.job.name},
      {"lockstep.network", trained.network.name()},
      {"lockstep.task", std::string(name_of(trained.job.task))},
      {"lockstep.activation", words.activation},
      {"lockstep.classes", Json::array_of(trained.classes).dump(-1)},
      {"lockstep.image_size", spec::to_json(data.image_size).dump(-1)},
      {"lockstep.center_crop", text(data.center_crop)},
      {"lockstep.mean", Json::array_of(data.mean).dump(-1)},
      {"lockstep.std", Json::array_of(data.std).dump(-1)},
      {"lockstep.normalised",
       options.preprocess ? "in the graph: give bytes, RGB" : text("outside: ", words.normalised)},
      {"lockstep.weights", trained.which},
      {"lockstep.weights_type", options.fp16 ? "fp16" : "fp32"},
      {"lockstep.weights_sha256", model::tensors_sha256(model::all_tensors(trained.network), "")}};
  if (words.threshold) metadata.emplace_back("lockstep.threshold", text(*words.threshold));
  if (!options.licence.empty()) metadata.emplace_back("lockstep.licence", options.licence);
  return metadata;
}

Exported export_network(const training::Trained& trained, const ExportOptions& options) {
  const bool onnx = file_format(options.to) == FileFormat::onnx;
  return onnx ? write_onnx(trained, options) : write_weights(trained, options);
}

Json Exported::to_json() const {
  Json all = Json::object();
  all["file"] = file.string();
  if (!data.empty()) all["data"] = data.string();
  all["bytes"] = bytes;
  all["tensors"] = tensors;
  if (nodes > 0) {
    all["nodes"] = nodes;
    all["input"] = input;
    all["outputs"] = outputs;
  }
  all["notes"] = Json::array_of(notes);
  return all;
}

std::string Exported::to_text() const {
  std::string shown =
      text(file.string(), ": ", base::format_bytes(static_cast<double>(bytes)), ", ", tensors, " tensors");
  if (!data.empty()) shown += text(" in ", data.string(), ", which has to stay beside it");
  if (nodes > 0) {
    shown += text("; ONNX, opset ", onnx::kOpset, ", ", nodes, " nodes\n  takes ", input, "\n  gives ", outputs);
  }
  return shown + "\n";
}

}  // namespace lockstep::verbs::exporting
