// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::onnx {

// A network as ONNX describes it: operators with named values between them. Plain data; file.h writes it.

inline constexpr int64_t kOpset = 20;     // of the operators
inline constexpr int64_t kIrVersion = 9;  // of the file, the one that belongs to that opset

enum class Type : int64_t { float32 = 1, uint8 = 2, int64 = 7, boolean = 9, float16 = 10, float64 = 11 };
int64_t bytes_of(Type type);  // of one element

struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

struct Node {
  std::string op;
  std::vector<std::string> inputs;  // "": an optional one that is left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes = {};
};

// Does not own its bytes, which are contiguous and little-endian.
struct Initializer {
  std::string name;
  Type type = Type::float32;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
};

using Dim = std::variant<int64_t, std::string>;  // a size, or the name of one that may be anything: "batch"

struct Value {
  std::string name;
  Type type = Type::float32;
  std::vector<Dim> dims;
};

struct Model {
  std::string name;
  std::string producer_version;
  std::string description;
  std::vector<Node> nodes;  // each behind those whose outputs it takes
  std::vector<Initializer> tensors;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Throws a bug, naming the place, unless every value has one origin that stands before its uses, every output is made,
// and every tensor has the bytes of its dims.
void check(const Model& model);

}  // namespace lockstep::onnx
