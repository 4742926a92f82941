// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/lstm_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "lockstep/kernel/lstm_gates.h"

namespace lockstep::model {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t same_padding(const Tensor& weight) {
  return weight.size(2) / 2;
}

// In the type of the input, as the gates take their sums: with amp a convolution gives 16 bit, and in backward, where
// nobody casts, its weight may be 16 bit wide and all else fp32.
Tensor convolve_same(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  const int64_t padding = same_padding(weight);
  const auto type = weight.scalar_type();
  const Tensor offset = bias.defined() ? bias.to(type) : bias;
  return at::conv2d(input.to(type), weight, offset, 1, {padding, padding}, 1, 1).to(input.scalar_type());
}

using ConvGradients = std::tuple<Tensor, Tensor, Tensor>;
ConvGradients convolve_backward(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                                std::array<bool, 3> wanted) {
  const int64_t padding = same_padding(weight);
  const auto type = weight.scalar_type();  // of amp: forward, autocast brings all to it; backward, nobody does
  return at::convolution_backward(gradient.to(type), input.to(type), weight,
                                  at::OptionalIntArrayRef(at::IntArrayRef{weight.size(0)}), {1, 1}, {padding, padding},
                                  {1, 1}, false, {0, 0}, 1, wanted);
}

// Makes empty maps of a layer's size. The kernels of a GPU take channels last; what goes in does not tell where it has
// one channel, which lies both ways.
struct MapMaker {
  at::TensorOptions options;
  int64_t height, width;
  at::MemoryFormat format;

  MapMaker(const Tensor& like, bool fused)
      : options(like.options()),
        height(like.size(2)),
        width(like.size(3)),
        format(fused ? at::MemoryFormat::ChannelsLast : like.suggest_memory_format()) {}
  Tensor operator()(int64_t rows, int64_t channels, at::ScalarType type) const {
    return at::empty({rows, channels, height, width}, options.dtype(type), format);
  }
};

// The maps of step `t`, of `rows` samples.
Tensor at_step(const Tensor& all, int64_t t, int64_t rows) {
  return all.narrow(0, t * rows, rows);
}

using MaybeTensor = std::optional<Tensor>;  // a custom function takes no undefined tensors

MaybeTensor maybe_tensor(const Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

class LstmFunction final : public torch::autograd::Function<LstmFunction> {
 public:
  static variable_list forward(AutogradContext* context, const MaybeTensor& maybe_input,
                               const MaybeTensor& maybe_hidden, const MaybeTensor& maybe_cells,
                               const MaybeTensor& maybe_weight, const Tensor& state_weight, const Tensor& bias,
                               const Tensor& peepholes, int64_t steps, bool recompute, bool fused) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor input = maybe_input.value_or(Tensor()), hidden = maybe_hidden.value_or(Tensor()),
                 cells = maybe_cells.value_or(Tensor()), input_weight = maybe_weight.value_or(Tensor());
    const int64_t channels = state_weight.size(1);
    const int64_t rows = hidden.defined() ? hidden.size(0) : input.size(0) / steps;
    const Tensor& like = input.defined() ? input : hidden;
    const MapMaker empty_maps(like, fused);
    // States of all steps, the first ones in front: what one step gives is what the next one takes.
    const Tensor all_hidden = empty_maps((steps + 1) * rows, channels, like.scalar_type());
    const Tensor all_cells = empty_maps((steps + 1) * rows, channels, at::kFloat);
    start(at_step(all_hidden, 0, rows), hidden);
    start(at_step(all_cells, 0, rows), cells);
    const Tensor gates = recompute ? Tensor() : empty_maps(steps * rows, 4 * channels, like.scalar_type());
    const Tensor sums = input.defined() && !recompute ? convolve_same(input, input_weight, bias) : Tensor();
    for (int64_t t = 0; t < steps; ++t) {
      const bool is_zero = t == 0 && !hidden.defined();
      const Tensor own = sums.defined()    ? at_step(sums, t, rows)
                         : input.defined() ? convolve_same(at_step(input, t, rows), input_weight, bias)
                                           : Tensor();
      kernel::lstm_gates({own, is_zero ? Tensor() : convolve_same(at_step(all_hidden, t, rows), state_weight),
                          input.defined() ? Tensor() : bias, at_step(all_cells, t, rows), peepholes},
                         {at_step(all_hidden, t + 1, rows), at_step(all_cells, t + 1, rows),
                          recompute ? Tensor() : at_step(gates, t, rows)},
                         fused);
    }
    context->save_for_backward({input, input_weight, state_weight, bias, peepholes, all_hidden, all_cells, gates});
    context->saved_data["steps"] = steps;
    context->saved_data["fused"] = fused;
    context->saved_data["starts"] = hidden.defined();
    context->saved_data["of_input"] = input.defined() && input.requires_grad();
    context->set_materialize_grads(false);
    return {all_hidden.narrow(0, rows, steps * rows), at_step(all_cells, steps, rows)};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &input_weight = saved[1], &state_weight = saved[2], &bias = saved[3],
                 &peepholes = saved[4], &hidden = saved[5], &cells = saved[6], &gates = saved[7];
    const int64_t steps = context->saved_data["steps"].toInt(), rows = hidden.size(0) / (steps + 1);
    const bool fused = context->saved_data["fused"].toBool(), recompute = !gates.defined();
    const bool starts = context->saved_data["starts"].toBool();
    const int64_t channels = state_weight.size(1);
    const bool of_input_wanted = context->saved_data["of_input"].toBool();

    const MapMaker empty_maps(hidden, fused);
    const Tensor of_sums = empty_maps(recompute ? rows : steps * rows, 4 * channels, hidden.scalar_type());
    const Tensor of_cells = empty_maps(rows, channels, at::kFloat);
    start(of_cells, gradients[1]);
    const Tensor of_peepholes = at::zeros({3, channels}, peepholes.options().dtype(at::kFloat));
    const Tensor scratch = recompute ? empty_maps(rows, 4 * channels, hidden.scalar_type()) : Tensor();
    Tensor carried, of_input, of_input_weight, of_state_weight, of_bias;
    if (recompute && of_input_wanted) of_input = at::empty_like(input);
    const auto add_to = [](Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum.add_(more) : more; };
    for (int64_t t = steps - 1; t >= 0; --t) {
      const bool is_zero = t == 0 && !starts;
      const Tensor before = at_step(hidden, t, rows);
      const Tensor step_gates = recompute ? scratch : at_step(gates, t, rows);
      if (recompute) {
        const Tensor again = empty_maps(rows, channels, hidden.scalar_type());
        const Tensor cells_again = empty_maps(rows, channels, at::kFloat);
        kernel::lstm_gates({input.defined() ? convolve_same(at_step(input, t, rows), input_weight, bias) : Tensor(),
                            is_zero ? Tensor() : convolve_same(before, state_weight), input.defined() ? Tensor() : bias,
                            at_step(cells, t, rows), peepholes},
                           {again, cells_again, scratch}, fused);
      }
      Tensor of_hidden = gradients[0].defined() ? at_step(gradients[0], t, rows) : Tensor();
      if (carried.defined()) of_hidden = of_hidden.defined() ? of_hidden + carried : carried;
      if (!of_hidden.defined()) of_hidden = empty_maps(rows, channels, hidden.scalar_type()).zero_();
      const Tensor own = recompute ? of_sums : at_step(of_sums, t, rows);
      kernel::lstm_gates_backward(
          {of_hidden, step_gates, at_step(cells, t, rows), at_step(cells, t + 1, rows), peepholes},
          {own, of_cells, of_peepholes}, fused);
      if (is_zero) {
        carried = Tensor();
      } else {
        auto [of_state, of_weight, none] = convolve_backward(own, before, state_weight, {true, recompute, false});
        carried = of_state;
        if (recompute) add_to(of_state_weight, of_weight);
      }
      if (!recompute) continue;
      if (input.defined()) {
        auto [of_own, of_weight, of_own_bias] =
            convolve_backward(own, at_step(input, t, rows), input_weight, {of_input_wanted, true, true});
        if (of_input_wanted) at_step(of_input, t, rows).copy_(of_own);
        add_to(of_input_weight, of_weight);
        add_to(of_bias, of_own_bias);
      } else {
        add_to(of_bias, sum_of(own));
      }
    }
    if (!recompute) {
      of_state_weight = std::get<1>(
          convolve_backward(of_sums, hidden.narrow(0, 0, steps * rows), state_weight, {false, true, false}));
      if (input.defined()) {
        std::tie(of_input, of_input_weight, of_bias) =
            convolve_backward(of_sums, input, input_weight, {of_input_wanted, true, true});
      } else {
        of_bias = sum_of(of_sums);
      }
    }
    if (!of_state_weight.defined()) of_state_weight = at::zeros(state_weight.sizes(), state_weight.options());
    return {of_input,
            starts ? carried : Tensor(),
            starts ? of_cells : Tensor(),
            of_input_weight,
            of_state_weight,
            of_bias.to(bias.scalar_type()),
            of_peepholes.to(peepholes.scalar_type()),
            Tensor(),
            Tensor(),
            Tensor()};
  }

 private:
  static void start(const Tensor& maps, const Tensor& values) {
    if (values.defined()) {
      maps.copy_(values);
    } else {
      maps.zero_();
    }
  }
  static Tensor sum_of(const Tensor& maps) { return maps.sum({0, 2, 3}, false, at::kFloat); }
};

// The same numbers without a backward: the states of a step are tensors of their own, of which nothing but the hidden
// ones is kept, and no tensor is written to in parts. So export can follow it.
LstmStates run_forward(const LstmLayer& layer) {
  const Tensor& like = layer.input.defined() ? layer.input : layer.hidden;
  const int64_t channels = layer.state_weight.size(1);
  const int64_t rows = layer.hidden.defined() ? layer.hidden.size(0) : layer.input.size(0) / layer.steps;
  const MapMaker empty_maps(like, false);
  Tensor hidden = layer.hidden, cells = layer.cells;
  if (!cells.defined()) cells = empty_maps(rows, channels, at::kFloat).zero_();
  const Tensor sums =
      layer.input.defined() && !layer.recompute ? convolve_same(layer.input, layer.input_weight, layer.bias) : Tensor();
  std::vector<Tensor> all;
  all.reserve(static_cast<size_t>(layer.steps));
  for (int64_t t = 0; t < layer.steps; ++t) {
    const Tensor own = sums.defined() ? at_step(sums, t, rows)
                       : layer.input.defined()
                           ? convolve_same(at_step(layer.input, t, rows), layer.input_weight, layer.bias)
                           : Tensor();
    const Tensor next = empty_maps(rows, channels, like.scalar_type());
    const Tensor next_cells = empty_maps(rows, channels, at::kFloat);
    kernel::lstm_gates({own, hidden.defined() ? convolve_same(hidden, layer.state_weight) : Tensor(),
                        layer.input.defined() ? Tensor() : layer.bias, cells, layer.peepholes},
                       {next, next_cells, {}}, false);
    all.push_back(next);
    hidden = next;
    cells = next_cells;
  }
  return {at::cat(all), cells};
}

}  // namespace

LstmStates run_lstm_layer(const LstmLayer& layer) {
  const Tensor& like = layer.input.defined() ? layer.input : layer.hidden;
  const bool fused = layer.fused && kernel::takes_lstm_gates(like);
  if (!fused && !c10::GradMode::is_enabled()) return run_forward(layer);
  auto states = LstmFunction::apply(maybe_tensor(layer.input), maybe_tensor(layer.hidden), maybe_tensor(layer.cells),
                                    maybe_tensor(layer.input_weight), layer.state_weight, layer.bias, layer.peepholes,
                                    layer.steps, layer.recompute, fused);
  return {states[0], states[1]};
}

}  // namespace lockstep::model
