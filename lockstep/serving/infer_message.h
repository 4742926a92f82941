// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/web/http/message.h"

namespace lockstep::serving {

// Requests and answers of inference in the Open Inference Protocol, version 2 (KServe), with Triton's binary tensors.
// https://github.com/kserve/open-inference-protocol, https://github.com/triton-inference-server/server (extension
// binary_tensor_data).

struct InferTensor {
  std::string name;
  std::string datatype;  // "FP32" or "BYTES"; what a request has besides is refused
  std::vector<int64_t> shape = {};
  std::vector<float> numbers = {};      // of FP32, the last dimension fastest
  std::vector<std::string> words = {};  // of BYTES

  bool operator==(const InferTensor&) const = default;
};

struct OutputWish {
  std::string name;
  bool is_binary = false;
};

struct InferRequest {
  std::string id = {};
  std::vector<InferTensor> inputs = {};
  std::vector<OutputWish> outputs = {};  // empty: all of them
  bool all_binary = false;               // of those

  bool is_binary(const std::string& output) const;
};

// Everything that is said of a tensor must agree with the bytes that came: names, shapes, sizes, types. User error in
// words that a client's author understands.
InferRequest read_infer(const web::Request& request);

struct InferAnswer {
  std::string model;
  std::string version;
  std::vector<InferTensor> outputs;
};

web::Response write_infer(const InferRequest& request, const InferAnswer& answer);

// Elements of a shape. User error for a negative one, and where they are too many to be meant.
int64_t element_count(const std::vector<int64_t>& shape, const std::string& name);

}  // namespace lockstep::serving
