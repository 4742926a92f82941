// SPDX-License-Identifier: Apache-2.0
// What the probes of networks share: tensors out of and into safetensors files, and an answer to each line.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::probe {

inline at::Tensor read_tensor(const weights::TensorView& view) {
  const auto type = view.dtype == weights::Dtype::F32   ? at::kFloat
                    : view.dtype == weights::Dtype::I64 ? at::kLong
                                                        : at::kByte;
  at::Tensor tensor = at::empty(view.shape, type);
  base::ensure(tensor.nbytes() == view.bytes.size(), "the probe file holds floats, integers and bytes");
  std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

inline at::Tensor read_tensor(const weights::SafetensorsFile& file, const char* name) {
  const weights::TensorView* view = file.find(name);
  base::ensure(view != nullptr && view->dtype == weights::Dtype::F32, "the probe file holds the tensor");
  return read_tensor(*view);
}

class Writer {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor& kept = kept_.emplace_back(tensor.detach().to(at::kFloat).contiguous().clone());
    const auto* data = static_cast<const std::byte*>(kept.data_ptr());
    views_.push_back({name, weights::Dtype::F32, kept.sizes().vec(), {data, kept.nbytes()}});
  }
  void write(const std::string& path) { weights::write_safetensors(path, views_); }

 private:
  std::vector<at::Tensor> kept_;
  std::vector<weights::TensorView> views_;
};

template <class Answer>
int answer_lines(const Answer& answer) {
  at::set_num_threads(1);
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::cout << answer(base::parse_json(line, "request")).dump(-1) << std::endl;
    } catch (const std::exception& error) {
      base::Json reply;
      reply["error"] = error.what();
      std::cout << reply.dump(-1) << std::endl;
    }
  }
  return 0;
}

}  // namespace lockstep::probe
