// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/lstm_gates.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <torch/library.h>

#include <optional>

namespace lockstep::kernel {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using GatesForward = void(const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, const Tensor&, const Tensor&,
                          Tensor, Tensor, MaybeTensor);
using GatesBackward = void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Tensor, Tensor,
                           Tensor);

MaybeTensor maybe(const Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

Tensor beside_maps(const Tensor& vector) {  // [channels] beside maps
  return vector.to(at::kFloat).view({1, -1, 1, 1});
}

// libtorch's own operators, on any device. They write in place: a library takes those arguments by value.
// NOLINTBEGIN(performance-unnecessary-value-param)
void gates_plain(const MaybeTensor& input_sums, const MaybeTensor& state_sums, const MaybeTensor& bias,
                 const Tensor& cells, const Tensor& peepholes, Tensor hidden, Tensor cells_out, MaybeTensor gates) {
  const int64_t channels = cells.size(1);
  Tensor sums = input_sums ? input_sums->to(at::kFloat) : beside_maps(*bias);
  if (state_sums) sums = sums + state_sums->to(at::kFloat);
  const auto part = [&](int64_t gate) { return sums.narrow(1, gate * channels, channels); };
  const auto hole = [&](int64_t gate) { return beside_maps(peepholes.select(0, gate)); };
  const Tensor in = at::sigmoid(at::addcmul(part(0), hole(0), cells));
  const Tensor forget = at::sigmoid(at::addcmul(part(1), hole(1), cells));
  const Tensor candidate = at::tanh(part(2));
  const Tensor next = at::addcmul(forget * cells, in, candidate);
  const Tensor out = at::sigmoid(at::addcmul(part(3), hole(2), next));
  cells_out.copy_(next);
  hidden.copy_(out * at::tanh(next));
  if (!gates) return;
  const Tensor* values[] = {&in, &forget, &candidate, &out};
  for (int64_t gate = 0; gate < 4; ++gate) gates->narrow(1, gate * channels, channels).copy_(*values[gate]);
}

void gates_backward_plain(const Tensor& of_hidden, const Tensor& gates, const Tensor& before, const Tensor& after,
                          const Tensor& peepholes, Tensor of_sums, Tensor of_cells, Tensor of_peepholes) {
  const int64_t channels = before.size(1);
  const auto gate = [&](int64_t i) { return gates.narrow(1, i * channels, channels).to(at::kFloat); };
  const auto hole = [&](int64_t i) { return beside_maps(peepholes.select(0, i)); };
  const auto slope = [](const Tensor& s) { return s * (1 - s); };  // of a sigmoid
  const Tensor in = gate(0), forget = gate(1), candidate = gate(2), out = gate(3);
  const Tensor bent = at::tanh(after), of_h = of_hidden.to(at::kFloat);
  const Tensor of_out = of_h * bent * slope(out);
  const Tensor of_after = of_cells + of_h * out * (1 - bent.square()) + of_out * hole(2);
  const Tensor of_in = of_after * candidate * slope(in);
  const Tensor of_forget = of_after * before * slope(forget);
  const Tensor of_candidate = of_after * in * (1 - candidate.square());
  const Tensor* values[] = {&of_in, &of_forget, &of_candidate, &of_out};
  for (int64_t i = 0; i < 4; ++i) of_sums.narrow(1, i * channels, channels).copy_(*values[i]);
  of_cells.copy_(of_after * forget + of_in * hole(0) + of_forget * hole(1));
  const auto sum = [](const Tensor& values_of, const Tensor& seen) { return (values_of * seen).sum({0, 2, 3}); };
  of_peepholes.add_(at::stack({sum(of_in, before), sum(of_forget, before), sum(of_out, after)}));
}

void gates_meta(const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, const Tensor&, const Tensor&, Tensor,
                Tensor, MaybeTensor) {}
void gates_backward_meta(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Tensor, Tensor,
                         Tensor) {}
// NOLINTEND(performance-unnecessary-value-param)

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def(
      "lstm_gates(Tensor? input_sums, Tensor? state_sums, Tensor? bias, Tensor cells, Tensor peepholes, Tensor(a!) "
      "hidden, Tensor(b!) cells_out, Tensor(c!)? gates) -> ()");
  library.def(
      "lstm_gates_backward(Tensor of_hidden, Tensor gates, Tensor before, Tensor after, Tensor peepholes, Tensor(a!) "
      "of_sums, Tensor(b!) of_cells, Tensor(c!) of_peepholes) -> ()");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("lstm_gates", &gates_plain);
  library.impl("lstm_gates_backward", &gates_backward_plain);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("lstm_gates", &gates_meta);
  library.impl("lstm_gates_backward", &gates_backward_meta);
}

void lstm_gates(const LstmGates& call, const LstmResults& results, bool fused) {
  if (!fused) {
    return gates_plain(maybe(call.input_sums), maybe(call.state_sums), maybe(call.bias), call.cells, call.peepholes,
                       results.hidden, results.cells, maybe(results.gates));
  }
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::lstm_gates", "").typed<GatesForward>();
  operation.call(maybe(call.input_sums), maybe(call.state_sums), maybe(call.bias), call.cells, call.peepholes,
                 results.hidden, results.cells, maybe(results.gates));
}

void lstm_gates_backward(const LstmGradients& call, const LstmGradientResults& results, bool fused) {
  if (!fused) {
    return gates_backward_plain(call.of_hidden, call.gates, call.before, call.after, call.peepholes, results.of_sums,
                                results.of_cells, results.of_peepholes);
  }
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::lstm_gates_backward", "").typed<GatesBackward>();
  operation.call(call.of_hidden, call.gates, call.before, call.after, call.peepholes, results.of_sums, results.of_cells,
                 results.of_peepholes);
}

bool takes_lstm_gates(const at::Tensor& hidden) {
  static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::lstm_gates", "");
  return hidden.is_cuda() && hidden.numel() > 0 && operation.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         hidden.is_contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace lockstep::kernel
