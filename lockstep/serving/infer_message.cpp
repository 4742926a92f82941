// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/infer_message.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/serving/tensor_data.h"

namespace lockstep::serving {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

static_assert(std::endian::native == std::endian::little, "binary tensors are little-endian");

constexpr const char* kHeaderLength = "Inference-Header-Content-Length";
constexpr int64_t kMostElements = int64_t{1} << 28;
constexpr size_t kMostTensors = 16;
constexpr size_t kMaxDocument = size_t{1} << 20;  // of JSON without the data

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Blame::user, what);
}

// What of the body is JSON; the rest are binary tensors.
size_t json_bytes(const web::Request& request) {
  const std::string* length = request.header(kHeaderLength);
  if (!length) return request.body.size();
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(length->data(), length->data() + length->size(), bytes);
  if (error != std::errc() || end != length->data() + length->size() || bytes == 0) {
    refuse(text(kHeaderLength, " is not the number of bytes of JSON before the tensors"));
  }
  if (bytes > request.body.size()) refuse(text(kHeaderLength, " is more than the body has"));
  return bytes;
}

// Gives the binary tensors of a body, one after the other.
class BinaryPart {
 public:
  explicit BinaryPart(std::string_view bytes) : rest_(bytes) {}
  std::string_view take(int64_t size, const std::string& name) {
    if (size < 0 || static_cast<uint64_t>(size) > rest_.size()) {
      refuse(text("input '", name, "': binary_data_size is more than the body has"));
    }
    const std::string_view part = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size));
    return part;
  }
  bool is_used_up() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Length (4 bytes) and bytes of each.
std::vector<std::string> words_in(std::string_view bytes, const std::string& name) {
  std::vector<std::string> words;
  while (!bytes.empty()) {
    uint32_t length = 0;
    if (bytes.size() < sizeof length) refuse(text("input '", name, "': ends within a length"));
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    if (length > bytes.size()) refuse(text("input '", name, "': an element is longer than what came"));
    words.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return words;
}

std::optional<int64_t> binary_size(const Json& input) {
  const Json* parameters = input.find("parameters");
  if (!parameters) return {};
  const Json* size = parameters->find("binary_data_size");
  return size ? std::optional(size->as_int()) : std::nullopt;
}

bool flag_in(const Json& holder, std::string_view name) {
  const Json* parameters = holder.find("parameters");
  const Json* flag = parameters ? parameters->find(name) : nullptr;
  return flag && flag->as_bool();
}

InferTensor read_input(const Json& input, std::vector<TensorData>& data, BinaryPart& binary) {
  InferTensor tensor{input.at("name").as_string(), input.at("datatype").as_string()};
  const std::string& name = tensor.name;
  for (const auto& size : input.at("shape").items()) tensor.shape.push_back(size.as_int());
  const int64_t count = element_count(tensor.shape, name);
  if (tensor.datatype != "FP32" && tensor.datatype != "BYTES") {
    refuse(text("input '", name, "': datatype ", tensor.datatype, " is not taken, FP32 and BYTES are"));
  }
  const bool is_bytes = tensor.datatype == "BYTES";
  const Json* index = input.find("data");
  const auto size = binary_size(input);
  if ((index != nullptr) == size.has_value()) refuse(text("input '", name, "' needs either data or binary_data_size"));
  if (size) {
    const std::string_view bytes = binary.take(*size, name);
    if (is_bytes) {
      tensor.words = words_in(bytes, name);
    } else {
      if (*size != count * static_cast<int64_t>(sizeof(float))) {
        refuse(text("input '", name, "': ", *size, " bytes came, its shape has ", count, " elements of 4"));
      }
      tensor.numbers.resize(static_cast<size_t>(count));
      std::memcpy(tensor.numbers.data(), bytes.data(), bytes.size());
    }
  } else {
    // What was lifted out left its index there; a key with escapes in it was not seen, and has what it had.
    const int64_t place = index->as_int();
    if (place < 0 || place >= std::ssize(data)) refuse(text("input '", name, "': data is no array"));
    auto& [numbers, words] = data[static_cast<size_t>(place)];
    if (is_bytes ? !numbers.empty() : !words.empty()) {
      refuse(text("input '", name, "': the data are not of datatype ", tensor.datatype));
    }
    tensor.numbers = std::move(numbers);
    tensor.words = std::move(words);
  }
  const auto came = std::ssize(tensor.words) + std::ssize(tensor.numbers);
  if (came != count) refuse(text("input '", name, "': ", came, " elements came, its shape has ", count));
  if (!std::all_of(tensor.numbers.begin(), tensor.numbers.end(), [](float number) { return std::isfinite(number); })) {
    refuse(text("input '", name, "': a value that is not finite in fp32"));
  }
  return tensor;
}

std::string packed(const InferTensor& tensor) {
  std::string bytes;
  if (tensor.datatype == "FP32") {
    bytes.assign(reinterpret_cast<const char*>(tensor.numbers.data()), tensor.numbers.size() * sizeof(float));
    return bytes;
  }
  for (const auto& word : tensor.words) {
    const auto length = static_cast<uint32_t>(word.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += word;
  }
  return bytes;
}

}  // namespace

int64_t element_count(const std::vector<int64_t>& shape, const std::string& name) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) refuse(text("input '", name, "': a negative size in its shape"));
    if (size > kMostElements || count * size > kMostElements) {
      refuse(text("input '", name, "': its shape has more than ", kMostElements, " elements"));
    }
    count *= size;
  }
  return count;
}

bool InferRequest::is_binary(const std::string& output) const {
  for (const auto& wish : outputs) {
    if (wish.name == output) return wish.is_binary;
  }
  return all_binary;
}

InferRequest read_infer(const web::Request& request) {
  const std::string_view body = request.body;
  const size_t length = json_bytes(request);
  auto [document, data] = lift_tensor_data(body.substr(0, length));
  const Json said = base::parse_json(document, "request", {.max_bytes = kMaxDocument, .comments = false});
  InferRequest infer;
  infer.id = said.string_or("id", "");
  infer.all_binary = flag_in(said, "binary_data_output");
  BinaryPart binary(body.substr(length));
  const Json& inputs = said.at("inputs");
  if (inputs.size() > kMostTensors) refuse("too many inputs");
  for (const auto& input : inputs.items()) infer.inputs.push_back(read_input(input, data, binary));
  if (!binary.is_used_up()) refuse("bytes behind the last binary tensor");
  if (const Json* outputs = said.find("outputs")) {
    if (outputs->size() > kMostTensors) refuse("too many outputs");
    for (const auto& output : outputs->items()) {
      infer.outputs.push_back({output.at("name").as_string(), flag_in(output, "binary_data")});
    }
  }
  return infer;
}

web::Response write_infer(const InferRequest& request, const InferAnswer& answer) {
  Json said = Json::object();
  said["model_name"] = answer.model;
  said["model_version"] = answer.version;
  if (!request.id.empty()) said["id"] = request.id;
  Json outputs = Json::array();
  std::string binary;
  for (const auto& tensor : answer.outputs) {
    Json output = Json::object();
    output["name"] = tensor.name;
    output["datatype"] = tensor.datatype;
    output["shape"] = Json::array_of(tensor.shape);
    if (request.is_binary(tensor.name)) {
      const std::string bytes = packed(tensor);
      output["parameters"]["binary_data_size"] = bytes.size();
      binary += bytes;
    } else if (tensor.datatype == "FP32") {
      Json numbers = Json::array();
      for (const float number : tensor.numbers) numbers.push_back(Json(static_cast<double>(number)));
      output["data"] = std::move(numbers);
    } else {
      output["data"] = Json::array_of(tensor.words);
    }
    outputs.push_back(std::move(output));
  }
  said["outputs"] = std::move(outputs);
  web::Response response = web::json_response(said);
  if (binary.empty()) return response;
  response.headers = {{"Content-Type", "application/octet-stream"},
                      {kHeaderLength, std::to_string(response.body.size())}};
  response.body += binary;
  return response;
}

}  // namespace lockstep::serving
