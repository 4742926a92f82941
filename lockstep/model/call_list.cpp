// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/call_list.h"

#include <map>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

// A slot for each tensor that a call gives; in-place calls give the one that they got.
class Slots {
 public:
  int64_t of(const at::Tensor& tensor) const {
    const auto found = known_.find(tensor.unsafeGetTensorImpl());
    return found == known_.end() ? -1 : found->second;
  }
  int64_t make(const at::Tensor& tensor) {
    return known_.try_emplace(tensor.unsafeGetTensorImpl(), static_cast<int64_t>(known_.size())).first->second;
  }
  int64_t count() const { return static_cast<int64_t>(known_.size()); }

 private:
  std::map<const void*, int64_t> known_;
};

}  // namespace

CallList::CallList(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs,
                   const std::vector<at::Tensor>& outputs) {
  Slots slots;
  for (const auto& input : inputs) inputs_.push_back(slots.make(input));
  std::map<int64_t, size_t> last;  // use, by slot
  for (const auto& call : calls) {
    Step step{c10::Dispatcher::singleton().findSchemaOrThrow(call.name.c_str(), call.overload.c_str()),
              call.inputs,
              {},
              {},
              {}};
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      Argument argument{i, call.inputs[i].isTensorList(), {}, {}};
      bool varies = false;
      for (const auto& tensor : tensors_in({call.inputs[i]})) {
        const int64_t slot = slots.of(tensor);
        argument.slots.push_back(slot);
        argument.all.push_back(slot < 0 ? tensor : at::Tensor());
        if (slot < 0) continue;
        varies = true;
        last[slot] = steps_.size();
      }
      if (!varies) continue;
      step.arguments[i] = {};
      step.from.push_back(std::move(argument));
    }
    for (const auto& tensor : tensors_in(call.outputs)) step.to.push_back(slots.make(tensor));
    for (const int64_t slot : step.to) last[slot] = std::max(last[slot], steps_.size());
    steps_.push_back(std::move(step));
  }
  for (const auto& output : outputs) {
    outputs_.push_back(slots.of(output));
    base::ensure(outputs_.back() >= 0, "an output follows from the inputs");
    last.erase(outputs_.back());
  }
  for (const auto& [slot, step] : last) steps_[step].over.push_back(slot);
  slots_ = slots.count();
}

std::vector<at::Tensor> CallList::run(const std::vector<at::Tensor>& inputs) const {
  std::vector<at::Tensor> values(static_cast<size_t>(slots_));
  const auto at_slot = [&](int64_t slot) -> at::Tensor& { return values[static_cast<size_t>(slot)]; };
  for (size_t i = 0; i < inputs.size(); ++i) at_slot(inputs_[i]) = inputs[i];
  std::vector<c10::IValue> stack;
  for (const auto& step : steps_) {
    stack = step.arguments;
    for (const auto& argument : step.from) {
      if (!argument.is_list) {
        stack[argument.index] = at_slot(argument.slots.front());
        continue;
      }
      std::vector<at::Tensor> list = argument.all;
      for (size_t i = 0; i < list.size(); ++i) {
        if (argument.slots[i] >= 0) list[i] = at_slot(argument.slots[i]);
      }
      stack[argument.index] = std::move(list);
    }
    step.operation.callBoxed(&stack);
    const auto given = tensors_in(stack);
    base::ensure(given.size() == step.to.size(), "a call gives as many tensors as when it was recorded");
    for (size_t i = 0; i < given.size(); ++i) at_slot(step.to[i]) = given[i];
    stack.clear();
    for (const int64_t slot : step.over) at_slot(slot).reset();
  }
  std::vector<at::Tensor> outputs;
  outputs.reserve(outputs_.size());
  for (const int64_t slot : outputs_) outputs.push_back(at_slot(slot));
  return outputs;
}

}  // namespace lockstep::model
