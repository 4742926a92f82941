// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/attention.h"

#include <ATen/ops/empty.h>

#include "lockstep/trace/inside.h"
#include "lockstep/trace/kernels.h"
#include "lockstep/trace/operator.h"
#include "lockstep/trace/simulated_device.h"

// What the kernels keep for the time of a call alone depends on the GPU: the forecast adds it (forecast/workspace.h).
namespace lockstep::trace {
namespace {

using forecast::OperatorClass;

Attention& attention() {
  static Attention kind = Attention::flash;
  return kind;
}

int64_t rounded(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// Two products forward (scores, values), five backward (both again, three gradients). [batch, heads, tokens, dim]
Work attention_work(const at::Tensor& query, const at::Tensor& key, double products) {
  Work work;
  work.flops = products * 2.0 * static_cast<double>(query.numel()) * static_cast<double>(key.size(2));
  work.shape = {query.size(0), query.size(1), query.size(2), key.size(2), query.size(3)};
  work.type = product_type(query, OperatorClass::attention);
  return work;
}

// The kernels work on [batch, tokens, heads, dim] and give a view of it.
at::Tensor make_rows(const at::Tensor& like) {
  return make({like.size(0), like.size(2), like.size(1), like.size(3)}, like.scalar_type()).transpose(1, 2);
}

using FlashOutput = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                               at::Tensor, at::Tensor>;

FlashOutput flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double /*dropout*/,
                  bool /*causal*/, bool /*debug*/, std::optional<double> /*scale*/) {
  at::Tensor output = make_rows(query);
  at::Tensor exponents = make({query.size(0), query.size(1), query.size(2)}, at::kFloat);
  at::Tensor generator = make({2}, at::kUInt64);
  at::Tensor unused = make({}, at::kUInt64);
  ran("aten::_scaled_dot_product_flash_attention", OperatorClass::attention, {query, key, value}, {output, exponents},
      attention_work(query, key, 2));
  return {output, exponents, {}, {}, query.size(2), key.size(2), generator, unused, make({0}, query.scalar_type())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& exponents, const at::Tensor& /*first*/, const at::Tensor& /*second*/,
    c10::SymInt /*queries*/, c10::SymInt /*keys*/, double /*dropout*/, bool /*causal*/, const at::Tensor& /*seed*/,
    const at::Tensor& /*offset*/, std::optional<double> /*scale*/) {
  const at::Tensor pushed = gradient.transpose(1, 2).contiguous();
  at::Tensor of_query = make_rows(query);
  at::Tensor of_key = make_rows(key);
  at::Tensor of_value = make_rows(value);
  ran("aten::_scaled_dot_product_flash_attention_backward", OperatorClass::attention_gradient,
      {pushed, query, key, value, output, exponents}, {of_query, of_key, of_value}, attention_work(query, key, 5));
  return {of_query, of_key, of_value};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient(const at::Tensor& query, const at::Tensor& key,
                                                                     const at::Tensor& value,
                                                                     const std::optional<at::Tensor>& /*bias*/,
                                                                     bool exponents_wanted, double /*dropout*/,
                                                                     bool /*causal*/, std::optional<double> /*scale*/) {
  at::Tensor output = make_rows(query);
  const int64_t tokens = exponents_wanted ? rounded(query.size(2), 32) : 0;
  at::Tensor exponents = make({query.size(0), query.size(1), tokens}, at::kFloat);
  const at::Tensor seed = at::empty({}, at::kLong);  // on the host, unlike flash attention's
  const at::Tensor offset = at::empty({}, at::kLong);
  ran("aten::_scaled_dot_product_efficient_attention", OperatorClass::attention, {query, key, value},
      {output, exponents}, attention_work(query, key, 2));
  return {output, exponents, seed, offset};
}

// The sums over the head's dimension of output times gradient: products, sums and their transposed copy.
at::Tensor row_products(const at::Tensor& output) {
  const at::Tensor products = make(output.sizes(), at::kFloat);
  const at::Tensor sums = make({output.size(0), output.size(2), output.size(1)}, at::kFloat);
  return make({output.size(0), output.size(1), output.size(2)}, at::kFloat);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& /*bias*/, const at::Tensor& output, const at::Tensor& exponents, const at::Tensor& /*seed*/,
    const at::Tensor& /*offset*/, double /*dropout*/, std::array<bool, 4> /*wanted*/, bool /*causal*/,
    std::optional<double> /*scale*/) {
  const at::Tensor pushed = gradient.transpose(1, 2).contiguous();
  at::Tensor of_query = make_rows(query);
  at::Tensor of_key = make_rows(key);
  at::Tensor of_value = make_rows(value);
  const at::Tensor delta = row_products(output);
  ran("aten::_scaled_dot_product_efficient_attention_backward", OperatorClass::attention_gradient,
      {pushed, query, key, value, output, exponents}, {of_query, of_key, of_value}, attention_work(query, key, 5));
  return {of_query, of_key, of_value, {}};
}

// cuDNN's kernels. Like flash attention's, but the random state comes first.
using CudnnOutput = FlashOutput;

CudnnOutput cudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::optional<at::Tensor>& /*bias*/, bool exponents_wanted, double /*dropout*/, bool /*causal*/,
                  bool /*debug*/, std::optional<double> /*scale*/) {
  at::Tensor seed = make({}, at::kLong);
  at::Tensor offset = make({}, at::kLong);
  at::Tensor output = make_rows(query);
  at::Tensor exponents;
  if (exponents_wanted) exponents = make({query.size(0), query.size(1), query.size(2), 1}, at::kFloat);
  ran("aten::_scaled_dot_product_cudnn_attention", OperatorClass::attention, {query, key, value}, {output, exponents},
      attention_work(query, key, 2));
  return {output, exponents, {}, {}, query.size(2), key.size(2), seed, offset, {}};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& exponents, const at::Tensor& /*seed*/, const at::Tensor& /*offset*/,
    const at::Tensor& /*bias*/, const at::Tensor& /*first*/, const at::Tensor& /*second*/, c10::SymInt /*queries*/,
    c10::SymInt /*keys*/, double /*dropout*/, bool /*causal*/, std::optional<double> /*scale*/) {
  at::Tensor of_query = make_rows(query);
  at::Tensor of_key = make_rows(key);
  at::Tensor of_value = make_rows(value);
  ran("aten::_scaled_dot_product_cudnn_attention_backward", OperatorClass::attention_gradient,
      {gradient, query, key, value, output, exponents}, {of_query, of_key, of_value}, attention_work(query, key, 5));
  return {of_query, of_key, of_value};
}

int64_t choice_operator(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double> scale,
                        bool grouped) {
  return choose_attention(query, key, value, mask, dropout, causal, scale, grouped);
}

}  // namespace

void set_attention(Attention kind) {
  attention() = kind;
}

// Flash attention and cuDNN's know 16-bit types only; what they leave goes to the memory-efficient kernel. cuDNN's
// takes heads of up to 128 in eights (on Hopper up to 256, which no network here has), flash attention pads the others.
int64_t choose_attention(const at::Tensor& query, const at::Tensor& /*key*/, const at::Tensor& /*value*/,
                         const std::optional<at::Tensor>& /*mask*/, double /*dropout*/, bool /*causal*/,
                         std::optional<double> /*scale*/, bool /*grouped*/) {
  if (attention() == Attention::math) return inside::math_attention_code();
  const bool half = query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf;
  if (attention() == Attention::efficient || !half) return inside::efficient_attention_code();
  const bool in_eights = query.size(-1) % 8 == 0 && query.size(-1) <= 128;
  const bool cudnn = attention() == Attention::cudnn && in_eights;
  return cudnn ? inside::cudnn_attention_code() : inside::flash_attention_code();
}

void register_attention(torch::Library& library) {
  library.impl("_fused_sdp_choice", &choice_operator);
  library.impl("_scaled_dot_product_flash_attention", &flash);
  library.impl("_scaled_dot_product_flash_attention_backward", &flash_backward);
  library.impl("_scaled_dot_product_cudnn_attention", &cudnn);
  library.impl("_scaled_dot_product_cudnn_attention_backward", &cudnn_backward);
  library.impl("_scaled_dot_product_efficient_attention", &efficient);
  library.impl("_scaled_dot_product_efficient_attention_backward", &efficient_backward);
}

}  // namespace lockstep::trace
