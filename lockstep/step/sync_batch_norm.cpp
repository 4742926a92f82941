// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_backward_elemt.h>
#include <ATen/ops/batch_norm_backward_reduce.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/batch_norm_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>
#include <vector>

namespace lockstep::step {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The group's way through autograd's saved data.
struct GroupCapsule : torch::CustomClassHolder {
  explicit GroupCapsule(comm::Group& its) : group(its) {}
  comm::Group& group;
};

at::Tensor by_channel(const at::Tensor& values) {
  return values.view({1, -1, 1, 1});  // [1, channels, 1, 1]
}

// Of this rank's rows: mean, sum of squared deviations from it, count; [2 x channels + 1], double.
at::Tensor own_statistics(const at::Tensor& input, at::ScalarType exact, double epsilon) {
  const int64_t channels = input.size(1);
  const auto doubles = input.options().dtype(at::kDouble);
  if (input.numel() == 0) return at::zeros({2 * channels + 1}, doubles);
  const int64_t count = input.numel() / channels;
  at::Tensor mean, variance;
  if (input.is_cuda()) {
    at::Tensor inverse;  // 1 / sqrt(variance + epsilon)
    std::tie(mean, inverse) = at::batch_norm_stats(input, epsilon);
    variance = inverse.to(at::kDouble).pow(-2).sub(epsilon);
  } else {
    std::tie(variance, mean) = at::var_mean(input.to(exact), at::IntArrayRef{0, 2, 3}, /*unbiased=*/false);
  }
  return at::cat({mean.to(at::kDouble), variance.to(at::kDouble).mul(static_cast<double>(count)),
                  at::full({1}, static_cast<double>(count), doubles)});
}

struct ChannelStatistics {   // of all ranks' rows, double
  at::Tensor mean, squares;  // [channels]; squares: sum of squared deviations
  at::Tensor count;          // [1]
};

ChannelStatistics merge_ranks(const std::vector<at::Tensor>& ranks, int64_t channels) {
  const at::Tensor all = at::stack(ranks);                   // [ranks, 2 x channels + 1]
  const at::Tensor means = all.narrow(1, 0, channels);       // [ranks, channels]
  const at::Tensor counts = all.narrow(1, 2 * channels, 1);  // [ranks, 1]
  ChannelStatistics result;
  result.count = counts.sum(0);
  result.mean = (means * counts).sum(0) / result.count;
  const at::Tensor off = means - result.mean;
  result.squares = (all.narrow(1, channels, channels) + off * off * counts).sum(0);
  return result;
}

at::Tensor normalized(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                      const at::Tensor& inverse, double epsilon) {
  if (input.numel() == 0) return at::empty_like(input);
  if (input.is_cuda()) return at::batch_norm_elemt(input, weight, bias, mean, inverse, epsilon);
  const at::Tensor scale = inverse * weight;
  return (input.to(mean.scalar_type()) - by_channel(mean))
      .mul_(by_channel(scale))
      .add_(by_channel(bias))
      .to(input.scalar_type());
}

struct ChannelSums {              // over this rank's rows, [channels]
  at::Tensor gradient;            // of dL/dy
  at::Tensor gradient_deviation;  // of dL/dy * (x - mean)
};

ChannelSums own_sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                     const at::Tensor& mean, const at::Tensor& inverse) {
  if (input.numel() == 0) return {at::zeros_like(mean), at::zeros_like(mean)};
  if (input.is_cuda()) {
    const auto sums = at::batch_norm_backward_reduce(gradient, input, mean, inverse, weight, /*input_g=*/true,
                                                     /*weight_g=*/false, /*bias_g=*/false);
    return {std::get<0>(sums), std::get<1>(sums)};
  }
  const at::Tensor exact = gradient.to(mean.scalar_type());
  const at::Tensor off = input.to(mean.scalar_type()) - by_channel(mean);
  return {exact.sum({0, 2, 3}), (exact * off).sum({0, 2, 3})};
}

// dL/dx = weight * inverse * (dL/dy - mean over all rows of dL/dy - (x - mean) * inverse^2 * mean of dL/dy (x - mean)).
at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                          const at::Tensor& mean, const at::Tensor& inverse, const ChannelSums& sums,
                          const at::Tensor& count) {
  if (input.numel() == 0) return at::empty_like(input);
  if (input.is_cuda()) {
    return at::batch_norm_backward_elemt(gradient, input, mean, inverse, weight, sums.gradient, sums.gradient_deviation,
                                         count.to(at::kInt));
  }
  const at::Tensor rows = count.to(mean.scalar_type());
  const at::Tensor off = input.to(mean.scalar_type()) - by_channel(mean);
  const at::Tensor slope = sums.gradient_deviation * inverse * inverse / rows;
  return (gradient.to(mean.scalar_type()) - by_channel(sums.gradient / rows) - off * by_channel(slope))
      .mul_(by_channel(weight * inverse))
      .to(input.scalar_type());
}

class SyncBatchNorm : public torch::autograd::Function<SyncBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight,
                            const at::Tensor& bias, const model::BatchNormCall& call, comm::Group* group) {
    const at::ScalarType exact = call.running_mean.scalar_type();
    const at::Tensor input = given.contiguous(given.suggest_memory_format());
    const ChannelStatistics all =
        merge_ranks(group->all_gather(own_statistics(input, exact, call.epsilon)), input.size(1));
    const at::Tensor mean = all.mean.to(exact);
    const at::Tensor inverse = (all.squares / all.count + call.epsilon).rsqrt().to(exact);
    call.running_mean.lerp_(mean, call.momentum);
    call.running_variance.lerp_((all.squares / (all.count - 1)).to(exact), call.momentum);
    context->save_for_backward({input, weight, mean, inverse, all.count});
    context->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<GroupCapsule>(*group));
    return normalized(input, weight, bias, mean, inverse, call.epsilon);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3], &count = saved[4];
    comm::Group& group =
        c10::static_intrusive_pointer_cast<GroupCapsule>(context->saved_data["group"].toCapsule())->group;
    const at::Tensor gradient = gradients[0].contiguous(input.suggest_memory_format());
    const ChannelSums mine = own_sums(gradient, input, weight, mean, inverse);
    at::Tensor both = at::cat({mine.gradient, mine.gradient_deviation}).to(at::kDouble);
    group.all_reduce_sum(both);
    both = both.to(mean.scalar_type());
    const ChannelSums all{both.narrow(0, 0, mean.numel()), both.narrow(0, mean.numel(), mean.numel())};
    // The reducer adds up the gradients of weight and bias, as all others.
    return {input_gradient(gradient, input, weight, mean, inverse, all, count), mine.gradient_deviation * inverse,
            mine.gradient, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor sync_batch_norm(const model::BatchNormCall& call, comm::Group& group) {
  return model::finished_batch_norm(SyncBatchNorm::apply(call.input, call.weight, call.bias, call, &group), call);
}

}  // namespace lockstep::step
