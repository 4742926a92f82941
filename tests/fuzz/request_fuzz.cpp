// sources: lockstep/base/json.cpp lockstep/base/json_reading.cpp lockstep/base/renamed.cpp lockstep/base/text.cpp
// sources: lockstep/base/error.cpp lockstep/base/hash.cpp lockstep/base/file.cpp lockstep/base/mapping_guard.cpp
// sources: lockstep/base/shell.cpp lockstep/web/http/message.cpp lockstep/web/http/head.cpp lockstep/web/http/gate.cpp
// sources: lockstep/serving/tensor_data.cpp lockstep/serving/infer_message.cpp
// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request: a head or a refusal with its reason, a path that leads nowhere else, a decision of the gate;
// what stands behind the head, as a request for inference, is read whole or refused, and tensors have what their shape
// says.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/serving/infer_message.h"
#include "lockstep/web/http/gate.h"
#include "lockstep/web/http/head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = bytes.find("\r\n\r\n");
  const size_t body = end == std::string_view::npos ? size : end + 4;
  const web::HeadOrRefusal read = web::read_head(bytes.substr(0, body));
  if (!read.head) {
    if (read.refusal.why.empty() || read.refusal.status < 400) std::abort();
    return 0;
  }
  const web::Head& head = *read.head;
  const std::string path = head.path + "/";
  if (head.path.front() != '/' || path.find("/../") != std::string::npos || path.find('\0') != std::string::npos)
    std::abort();
  if (head.is_chunked && head.content_length) std::abort();
  const auto refused = web::refuse_at({.token = std::string(64, 'a')}, head);
  if (refused && refused->status != 303 && refused->status < 400) std::abort();
  try {
    web::Request request{head.method, head.path, head.query, head.headers, std::string(bytes.substr(body)), ""};
    const serving::InferRequest infer = serving::read_infer(request);
    for (const auto& tensor : infer.inputs) {
      const auto count = static_cast<size_t>(serving::element_count(tensor.shape, tensor.name));
      if (tensor.numbers.size() + tensor.words.size() != count) std::abort();
    }
    serving::write_infer(infer, {"m", "1", infer.inputs});
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
  return 0;
}
