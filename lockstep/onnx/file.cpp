// SPDX-License-Identifier: Apache-2.0
#include "lockstep/onnx/file.h"

#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {
namespace {

using base::text;

// Numbers of fields and kinds are those of onnx.proto.
constexpr int64_t kFloatKind = 1, kIntKind = 2, kStringKind = 3, kIntsKind = 7;
constexpr uint64_t kPage = 4096;  // tensors begin at multiples of it, so that readers can map them

// Shapes and other small tensors stay in the file in any case: readers need them to know the shapes of the others.
bool goes_outside(const Initializer& tensor) {
  return tensor.bytes.size() >= kPage;
}

Wire pair_message(const std::string& key, const std::string& value) {
  Wire pair;
  pair.add_text(1, key);
  pair.add_text(2, value);
  return pair;
}

struct AttributeValue {
  Wire& message;
  int64_t operator()(int64_t value) const { return message.add_int(3, value), kIntKind; }
  int64_t operator()(float value) const { return message.add_float(2, value), kFloatKind; }
  int64_t operator()(const std::string& value) const { return message.add_text(4, value), kStringKind; }
  int64_t operator()(const std::vector<int64_t>& values) const {
    for (const int64_t value : values) message.add_int(8, value);
    return kIntsKind;
  }
};

Wire attribute_message(const Attribute& attribute) {
  Wire message;
  message.add_text(1, attribute.name);
  const int64_t kind = std::visit(AttributeValue{message}, attribute.value);
  message.add_int(20, kind);
  return message;
}

Wire node_message(const Node& node) {
  Wire message;
  for (const auto& input : node.inputs) message.add_text(1, input);
  for (const auto& output : node.outputs) message.add_text(2, output);
  message.add_text(3, node.outputs.front());
  message.add_text(4, node.op);
  for (const auto& attribute : node.attributes) message.add_message(5, attribute_message(attribute));
  return message;
}

Wire value_message(const Value& value) {
  Wire shape, tensor, type, message;
  for (const Dim& dim : value.dims) {
    Wire size;
    if (const auto* number = std::get_if<int64_t>(&dim)) {
      size.add_int(1, *number);
    } else {
      size.add_text(2, std::get<std::string>(dim));
    }
    shape.add_message(1, std::move(size));
  }
  tensor.add_int(1, static_cast<int64_t>(value.type));
  tensor.add_message(2, std::move(shape));
  type.add_message(1, std::move(tensor));
  message.add_text(1, value.name);
  message.add_message(2, std::move(type));
  return message;
}

uint64_t round_up(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// With the bytes, or with the place where they lie in the file `data`.
Wire tensor_message(const Initializer& tensor, const std::string& data, uint64_t offset) {
  Wire message;
  for (const int64_t size : tensor.dims) message.add_int(1, size);
  message.add_int(2, static_cast<int64_t>(tensor.type));
  message.add_text(8, tensor.name);
  if (data.empty()) {
    message.add_bytes(9, tensor.bytes);
    return message;
  }
  message.add_message(13, pair_message("location", data));
  message.add_message(13, pair_message("offset", text(offset)));
  message.add_message(13, pair_message("length", text(tensor.bytes.size())));
  message.add_int(14, 1);
  return message;
}

Wire graph_message(const Model& model, const std::string& data) {
  Wire graph;
  for (const auto& node : model.nodes) graph.add_message(1, node_message(node));
  graph.add_text(2, model.name);
  uint64_t offset = 0;
  for (const auto& tensor : model.tensors) {
    const bool outside = !data.empty() && goes_outside(tensor);
    graph.add_message(5, tensor_message(tensor, outside ? data : "", offset));
    if (outside) offset += round_up(tensor.bytes.size());
  }
  for (const auto& input : model.inputs) graph.add_message(11, value_message(input));
  for (const auto& output : model.outputs) graph.add_message(12, value_message(output));
  return graph;
}

Wire model_message(const Model& model, const std::string& data) {
  Wire message, opset;
  opset.add_text(1, "");
  opset.add_int(2, kOpset);
  message.add_int(1, kIrVersion);
  message.add_text(2, "lockstep");
  message.add_text(3, model.producer_version);
  message.add_text(6, model.description);
  message.add_message(7, graph_message(model, data));
  message.add_message(8, std::move(opset));
  for (const auto& [key, value] : model.metadata) message.add_message(14, pair_message(key, value));
  return message;
}

void write_data(const base::Path& path, const Model& model) {
  static constexpr std::array<std::byte, kPage> kZeros{};
  std::vector<std::span<const std::byte>> parts;
  for (const auto& tensor : model.tensors) {
    if (!goes_outside(tensor)) continue;
    parts.push_back(tensor.bytes);
    parts.push_back(std::span(kZeros).first(round_up(tensor.bytes.size()) - tensor.bytes.size()));
  }
  base::write_file(path, parts);
}

}  // namespace

Written write_file(const base::Path& path, const Model& model, uint64_t most) {
  check(model);
  uint64_t bytes = 0;
  for (const auto& tensor : model.tensors) bytes += tensor.bytes.size();
  Written written{path, {}, 0};
  if (bytes > most) {
    written.data = path.string() + ".data";
    write_data(written.data, model);
    written.bytes += std::filesystem::file_size(written.data);
  }
  const Wire message = model_message(model, written.data.filename().string());
  base::write_file(path, message.pieces());
  written.bytes += message.size();
  return written;
}

}  // namespace lockstep::onnx
