// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/calls.h"

#include <ATen/core/operator_name.h>
#include <ATen/record_function.h>

#include <memory>
#include <utility>

namespace lockstep::model {
namespace {

// libtorch's callbacks are plain functions: this is how they reach the recording of their thread.
struct Listening {
  std::vector<Call> calls;
  int64_t depth = 0;
};
thread_local Listening* listening = nullptr;

struct Inputs : at::ObserverContext {
  std::vector<c10::IValue> values;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  if (listening == nullptr || ++listening->depth > 1) return nullptr;
  auto inputs = std::make_unique<Inputs>();
  const auto given = function.inputs();
  inputs->values.assign(given.begin(), given.end());
  return inputs;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (listening == nullptr || --listening->depth > 0) return;
  const auto name = function.operator_name();
  if (context == nullptr || !name) return;
  listening->calls.push_back(
      {name->name, name->overload_name, std::move(static_cast<Inputs*>(context)->values), function.outputs()});
}

class ListeningScope {
 public:
  explicit ListeningScope(Listening& to) {
    listening = &to;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~ListeningScope() {
    at::removeCallback(handle_);
    listening = nullptr;
  }
  ListeningScope(const ListeningScope&) = delete;
  ListeningScope& operator=(const ListeningScope&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

std::vector<Call> record_calls(const std::function<void()>& work) {
  Listening recording;
  {
    const ListeningScope scope(recording);
    work();
  }
  return std::move(recording.calls);
}

std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> all;
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined()) all.push_back(value.toTensor());
    if (!value.isTensorList()) continue;
    for (const auto& tensor : value.toTensorVector()) all.push_back(tensor);
  }
  return all;
}

}  // namespace lockstep::model
