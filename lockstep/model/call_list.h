// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

#include "lockstep/model/calls.h"

namespace lockstep::model {

// Recorded calls, made again for other values of the same shapes: tensors that no call gave and that are no inputs stay
// as they were. A value is let go behind its last use.
class CallList {
 public:
  // `inputs` and `outputs`: the tensors of the recording.
  CallList(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs,
           const std::vector<at::Tensor>& outputs);
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

 private:
  struct Argument {
    size_t index = 0;             // among the operator's
    bool is_list = false;         // of tensors
    std::vector<int64_t> slots;   // where the values are; -1: constant
    std::vector<at::Tensor> all;  // of a list: its constants, elsewhere undefined
  };
  struct Step {
    c10::OperatorHandle operation;
    std::vector<c10::IValue> arguments;  // those of `from` are put in
    std::vector<Argument> from;
    std::vector<int64_t> to;    // slots of the tensors that it gives
    std::vector<int64_t> over;  // slots that nobody reads any more
  };

  std::vector<Step> steps_;
  std::vector<int64_t> inputs_;   // their slots
  std::vector<int64_t> outputs_;  // likewise
  int64_t slots_ = 0;
};

}  // namespace lockstep::model
