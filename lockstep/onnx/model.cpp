// SPDX-License-Identifier: Apache-2.0
#include "lockstep/onnx/model.h"

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::onnx {

using base::text;

int64_t bytes_of(Type type) {
  switch (type) {
    case Type::uint8:
    case Type::boolean:
      return 1;
    case Type::float16:
      return 2;
    case Type::float32:
      return 4;
    case Type::int64:
    case Type::float64:
      return 8;
  }
  return 0;
}

void check(const Model& model) {
  std::set<std::string> known;
  const auto define = [&](const std::string& name, const std::string& what) {
    base::ensure(!name.empty() && known.insert(name).second, text(what, " '", name, "' has a name of its own"));
  };
  for (const Value& input : model.inputs) define(input.name, "input");
  for (const Initializer& tensor : model.tensors) {
    define(tensor.name, "tensor");
    int64_t elements = 1;
    for (const int64_t size : tensor.dims) elements *= size;
    base::ensure(elements * bytes_of(tensor.type) == static_cast<int64_t>(tensor.bytes.size()),
                 text("tensor '", tensor.name, "' has the bytes of its dims"));
  }
  for (const Node& node : model.nodes) {
    for (const std::string& input : node.inputs) {
      base::ensure(input.empty() || known.contains(input), text(node.op, " takes '", input, "', which is made before"));
    }
    for (const std::string& output : node.outputs) define(output, node.op + "'s output");
  }
  base::ensure(!model.name.empty() && !model.outputs.empty(), "a model has a name and an output");
  for (const Value& output : model.outputs) {
    base::ensure(known.contains(output.name), text("output '", output.name, "' is made"));
  }
}

}  // namespace lockstep::onnx
