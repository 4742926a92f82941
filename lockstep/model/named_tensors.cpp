// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/named_tensors.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::model {

const at::Tensor* NamedTensors::find(std::string_view name) const {
  for (const Named& entry : entries_) {
    if (entry.name == name) return &entry.tensor;
  }
  return nullptr;
}

const at::Tensor& NamedTensors::at(std::string_view name) const {
  const at::Tensor* found = find(name);
  base::ensure(found != nullptr, base::text("there is a tensor '", name, "'"));
  return *found;
}

void NamedTensors::set(const std::string& name, at::Tensor tensor) {
  for (Named& entry : entries_) {
    if (entry.name != name) continue;
    entry.tensor = std::move(tensor);
    return;
  }
  entries_.push_back({name, std::move(tensor)});
}

}  // namespace lockstep::model
