// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/kernel/fused_batch_norm.h"
#include "lockstep/kernel/max_pool.h"

namespace lockstep::model {
namespace {

double normal_cdf(double x) {
  return (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

// By inversion, within [-2, 2] whatever the deviation: so do torch.nn.init and timm.
void fill_truncated_normal(at::Tensor& tensor, double deviation, const at::Generator& generator) {
  const double low = normal_cdf(-2 / deviation);
  const double high = normal_cdf(2 / deviation);
  tensor.uniform_(2 * low - 1, 2 * high - 1, generator);
  tensor.erfinv_().mul_(deviation * std::sqrt(2.0)).clamp_(-2, 2);
}

Fill conv_fill(const ConvShape& shape) {
  const auto area = static_cast<double>(shape.kernel * shape.kernel);
  const int64_t in = shape.in / shape.groups;
  const double fan_in = area * static_cast<double>(in);
  const double fan_out = area * static_cast<double>(shape.out);
  switch (shape.init) {
    case ConvInit::kaiming_fan_in:
      return Fill::normal(std::sqrt(2 / fan_in));
    case ConvInit::kaiming_fan_out:
      return Fill::normal(std::sqrt(2 / fan_out));
    case ConvInit::kaiming_fan_out_of_group:
      return Fill::normal(std::sqrt(2 / fan_out * static_cast<double>(shape.groups)));
    case ConvInit::truncated:
      return Fill::truncated_normal(0.01);
    case ConvInit::truncated_002:
      return Fill::truncated_normal(0.02);
    case ConvInit::uniform_fan_in:
      return Fill::uniform(std::sqrt(3 / fan_in));
    case ConvInit::normal_001:
      return Fill::normal(0.01);
    case ConvInit::he_uniform:
      return Fill::uniform(std::sqrt(6 / fan_in));
    case ConvInit::torch_default:
      break;
  }
  return Fill::uniform(1 / std::sqrt(fan_in));
}

Fill linear_fill(LinearInit init, double fan_in) {
  if (init == LinearInit::truncated_002) return Fill::truncated_normal(0.02);
  if (init == LinearInit::truncated_001) return Fill::truncated_normal(0.01);
  if (init == LinearInit::normal_001) return Fill::normal(0.01);
  return Fill::uniform(1 / std::sqrt(fan_in));
}

Fill linear_bias_fill(LinearInit init, double fan_in) {
  const bool zero =
      init == LinearInit::zero_bias || init == LinearInit::truncated_002 || init == LinearInit::normal_001;
  return zero ? Fill::constant(0) : Fill::uniform(1 / std::sqrt(fan_in));
}

// Which taps of a kernel, along one dim, meet a pixel at some output; the others meet padding alone.
at::Tensor meets_pixels(int64_t size, const ConvShape& shape, int64_t padding) {
  at::Tensor meets = at::zeros({shape.kernel}, at::kBool);
  const int64_t outputs = (size + 2 * padding - shape.kernel) / shape.stride + 1;
  for (int64_t tap = 0; tap < shape.kernel; ++tap) {
    for (int64_t out = 0; out < outputs; ++out) {
      const int64_t pixel = out * shape.stride - padding + tap;
      if (pixel >= 0 && pixel < size) meets.data_ptr<bool>()[tap] = true;
    }
  }
  return meets;
}

// The weight, with zeros where a tap meets padding alone. This changes no output. But oneDNN (as of libtorch 2.11), in
// bf16 and with a stride above 1, leaves the gradient of such taps as it finds the memory: a 3 x 3 kernel with stride 2
// on maps of 1 x 1 has garbage in 8 of 9. Their gradient is zero.
at::Tensor with_met_taps(const at::Tensor& weight, const at::Tensor& input, const ConvShape& shape,
                         std::array<int64_t, 2> padding) {
  const int64_t height = input.size(2);
  const int64_t width = input.size(3);
  const bool may_miss = shape.stride > 1 && std::min(height, width) < shape.kernel + shape.stride;
  if (!may_miss || !input.is_cpu()) return weight;
  const at::Tensor met = meets_pixels(height, shape, padding[0])
                             .unsqueeze(1)
                             .logical_and(meets_pixels(width, shape, padding[1]));  // [kernel, kernel]
  return met.all().item<bool>() ? weight : at::where(met, weight, at::zeros({}, weight.options()));
}

// Whether oneDNN (as of libtorch 2.11) would gather the pixels that a kernel of one pixel reads into a workspace that
// is too small for them, when it computes the gradient of the weight: with fewer channels than a register holds it
// writes past its end (github.com/uxlfoundation/oneDNN/issues/6035). An odd batch on two threads ends in a double free.
bool overruns_gathering(const at::Tensor& input, const ConvShape& shape, std::array<int64_t, 2> padding) {
  constexpr int64_t kRegister = 16;
  return input.is_cpu() && shape.kernel == 1 && shape.stride > 1 && shape.in / shape.groups < kRegister &&
         padding == std::array<int64_t, 2>{};
}

at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const ConvShape& shape,
                    std::array<int64_t, 2> padding) {
  if (overruns_gathering(input, shape, padding)) {
    const at::Tensor read = input.slice(2, 0, c10::nullopt, shape.stride).slice(3, 0, c10::nullopt, shape.stride);
    return at::conv2d(read, weight, bias, 1, padding, 1, shape.groups);
  }
  return at::conv2d(input, with_met_taps(weight, input, shape, padding), bias, shape.stride, padding, 1, shape.groups);
}

at::Tensor linear(const Block& block, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  if (block.fuses(input) && kernel::takes_linear(input, weight)) return kernel::linear(input, weight, bias);
  return at::linear(input, weight, bias);
}

Parameter optional_bias(const Site& site, const ConvShape& shape) {
  if (!shape.bias) return {};
  if (shape.init != ConvInit::torch_default) return {site, "bias", {shape.out}, Fill::constant(0)};
  const int64_t fan_in = shape.kernel * shape.kernel * shape.in / shape.groups;
  return {site, "bias", {shape.out}, Fill::uniform(1 / std::sqrt(static_cast<double>(fan_in)))};
}

}  // namespace

Maker::Maker(int64_t seed, at::Device device, Values values, spec::Layout layout)
    : generator_(at::detail::createCPUGenerator(static_cast<uint64_t>(seed))),
      device_(device),
      values_(values),
      images_(memory_format(layout)) {}

at::Tensor Maker::make(at::IntArrayRef shape, Fill fill) {
  if (values_ == Values::none || device_.is_meta()) {
    const auto format = shape.size() == 4 ? images_ : at::MemoryFormat::Contiguous;
    return at::empty(shape, at::TensorOptions().device(device_), format);
  }
  at::Tensor tensor = at::empty(shape);  // filled in logical order, whatever its layout later
  switch (fill.kind) {
    case Fill::Kind::constant:
      tensor.fill_(fill.scale);
      break;
    case Fill::Kind::uniform:
      tensor.uniform_(-fill.scale, fill.scale, generator_);
      break;
    case Fill::Kind::normal:
      tensor.normal_(0, fill.scale, generator_);
      break;
    case Fill::Kind::truncated_normal:
      fill_truncated_normal(tensor, fill.scale, generator_);
      break;
  }
  // A copy: contiguous() would leave a 1x1 kernel the strides of the other layout, which fits both, and gradients come
  // with those of this one: the reducer warns of each.
  if (shape.size() == 4) tensor = tensor.clone(images_);
  return tensor.to(device_);
}

Parameter::Parameter(const Site& site, const std::string& name, at::IntArrayRef shape, Fill fill)
    : block_(&site.block), index_(site.block.parameters.size()) {
  at::Tensor tensor = site.maker.make(shape, fill);
  tensor.requires_grad_(true);
  site.block.parameters.push_back({site.prefix + name, std::move(tensor)});
}

Buffer::Buffer(const Site& site, const std::string& name, at::IntArrayRef shape, Fill fill)
    : block_(&site.block), index_(site.block.buffers.size()) {
  site.block.buffers.push_back({site.prefix + name, site.maker.make(shape, fill)});
}

Conv2d::Conv2d(const Site& site, const ConvShape& shape)
    : shape_(shape),
      weight_(site, "weight", {shape.out, shape.in / shape.groups, shape.kernel, shape.kernel}, conv_fill(shape)),
      bias_(optional_bias(site, shape)) {}

at::Tensor Conv2d::operator()(const at::Tensor& input) const {
  const at::Tensor bias = bias_ ? bias_().to(weight_().scalar_type()) : at::Tensor();
  return convolve(input, weight_(), bias, shape_, {shape_.padding, shape_.padding});
}

at::Tensor Conv2d::same_padded(const at::Tensor& input) const {
  const auto total = [&](int64_t size) {
    const int64_t outputs = (size + shape_.stride - 1) / shape_.stride;
    return std::max<int64_t>((outputs - 1) * shape_.stride + shape_.kernel - size, 0);
  };
  const int64_t height = total(input.size(2));
  const int64_t width = total(input.size(3));
  if (height % 2 == 0 && width % 2 == 0) {
    return convolve(input, weight_(), at::Tensor(), shape_, {height / 2, width / 2});
  }
  const at::Tensor padded =
      at::constant_pad_nd(input, {width / 2, width - width / 2, height / 2, height - height / 2}, 0);
  return convolve(padded, weight_(), at::Tensor(), shape_, {0, 0});
}

// On a GPU a matrix product: libtorch's convolutions with large strides are slow there.
at::Tensor Conv2d::patches(const at::Tensor& input) const {
  const int64_t side = shape_.kernel, channels = input.size(1);
  const bool last = input.is_contiguous(at::MemoryFormat::ChannelsLast);
  if (!weight_.block().fuses(input) || !last || !kernel::takes_linear(input.permute({0, 2, 3, 1}), weight_())) {
    return operator()(input).flatten(2).transpose(1, 2);
  }
  const int64_t batch = input.size(0), rows = input.size(2) / side, columns = input.size(3) / side;
  const at::Tensor windows = input.permute({0, 2, 3, 1})
                                 .view({batch, rows, side, columns, side, channels})
                                 .permute({0, 1, 3, 2, 4, 5})
                                 .reshape({batch, rows * columns, side * side * channels});
  const at::Tensor weight = weight_().permute({0, 2, 3, 1}).reshape({shape_.out, side * side * channels});
  return linear(weight_.block(), windows, weight, bias_().to(weight.scalar_type()));
}

ConvTranspose2d::ConvTranspose2d(const Site& site, const ConvShape& shape)
    : stride_(shape.stride),
      weight_(site, "weight", {shape.in, shape.out, shape.kernel, shape.kernel}, conv_fill(shape)),
      bias_(optional_bias(site, shape)) {
  base::ensure(shape.padding == 0 && shape.groups == 1, "a transposed convolution without padding and groups");
}

at::Tensor ConvTranspose2d::operator()(const at::Tensor& input) const {
  const at::Tensor bias = bias_ ? bias_().to(weight_().scalar_type()) : at::Tensor();
  return at::conv_transpose2d(input, weight_(), bias, stride_);
}

BatchNorm2d::BatchNorm2d(const Site& site, int64_t channels, NormOptions options)
    : block_(&site.block),
      options_(options),
      weight_(site, "weight", {channels}, Fill::constant(1)),
      bias_(site, "bias", {channels}, Fill::constant(0)),
      mean_(site, "running_mean", {channels}, Fill::constant(0)),
      variance_(site, "running_var", {channels}, Fill::constant(1)) {}

at::Tensor BatchNorm2d::run(const at::Tensor& input, Mode mode, const at::Tensor& added, bool relu) const {
  const at::ScalarType exact = mean_().scalar_type();  // statistics and their scale stay exact under 16-bit inputs
  const BatchNormCall call{input,       weight_().to(exact), bias_().to(exact), mean_(),
                           variance_(), options_.momentum,   options_.epsilon,  added,
                           relu};
  if (mode == Mode::train && block_->batch_norm) return block_->batch_norm(call);
  if (mode == Mode::train && block_->fuses(input) && kernel::takes_fused_batch_norm(input)) {
    return kernel::fused_batch_norm({call.input, call.added, call.weight, call.bias, call.running_mean,
                                     call.running_variance, call.momentum, call.epsilon, call.relu});
  }
  return plain_batch_norm(call, mode == Mode::train);
}

Linear::Linear(const Site& site, int64_t in, int64_t out, LinearInit init)
    : weight_(site, "weight", {out, in}, linear_fill(init, static_cast<double>(in))),
      bias_(site, "bias", {out}, linear_bias_fill(init, static_cast<double>(in))) {}

at::Tensor Linear::operator()(const at::Tensor& input) const {
  return linear(weight_.block(), input, weight_(), bias_().to(weight_().scalar_type()));
}

at::Tensor Linear::gelu(const at::Tensor& input) const {
  const at::Tensor bias = bias_().to(weight_().scalar_type());
  if (weight_.block().fuses(input) && kernel::takes_linear(input, weight_())) {
    return kernel::linear_gelu(input, weight_(), bias);
  }
  return at::gelu(at::linear(input, weight_(), bias));
}

Linear make_classifier(const Site& site, int64_t in, int64_t classes, LinearInit init) {
  Linear layer(site, in, classes, init);
  site.block.classifier.push_back(site.prefix + "weight");
  site.block.classifier.push_back(site.prefix + "bias");
  return layer;
}

LayerNorm::LayerNorm(const Site& site, int64_t width, double epsilon)
    : epsilon_(epsilon),
      width_(width),
      weight_(site, "weight", {width}, Fill::constant(1)),
      bias_(site, "bias", {width}, Fill::constant(0)) {}

at::Tensor LayerNorm::operator()(const at::Tensor& input) const {
  // libtorch's CUDA kernel wants input and weights of one type (it adds up in fp32 all the same); autocast sees to it
  // by itself, the CPU's kernel takes fp32 weights beside 16-bit inputs.
  if (input.is_cuda() && input.scalar_type() != weight_().scalar_type() &&
      !at::autocast::is_autocast_enabled(at::kCUDA)) {
    const auto type = input.scalar_type();
    return at::layer_norm(input, {width_}, weight_().to(type), bias_().to(type), epsilon_);
  }
  return at::layer_norm(input, {width_}, weight_(), bias_(), epsilon_);
}

kernel::SumAndNorm LayerNorm::after_sum(const at::Tensor& input, const at::Tensor& branch) const {
  const bool alike = !branch.defined() || branch.scalar_type() == input.scalar_type();
  if (weight_.block().fuses(input) && alike && kernel::takes_add_layer_norm(input)) {
    return kernel::add_layer_norm(input, branch, weight_().to(at::kFloat), bias_().to(at::kFloat), epsilon_);
  }
  const at::Tensor sum = branch.defined() ? input.add(branch) : input;
  return {sum, operator()(sum)};
}

at::Tensor drop_path(const Block& block, const at::Tensor& branch, double rate, Mode mode) {
  if (rate <= 0 || mode != Mode::train) return branch;
  std::vector<int64_t> shape(static_cast<size_t>(branch.dim()), 1);
  shape[0] = branch.size(0);
  at::Tensor keep = at::empty(shape, branch.options().requires_grad(false));
  return branch.mul(keep.bernoulli_(1 - rate, block.random).div_(1 - rate));
}

at::Tensor dropout(const Block& block, const at::Tensor& input, double rate, Mode mode) {
  if (rate <= 0 || mode != Mode::train) return input;
  if (!block.random) return at::dropout(input, rate, true);
  // libtorch's own takes no generator; these are its steps.
  const at::Tensor keep = at::empty_like(input, input.options().requires_grad(false));
  return input.mul(keep.bernoulli_(1 - rate, block.random).div_(1 - rate));
}

at::Tensor max_pool(const Block& block, const at::Tensor& input, const PoolShape& shape) {
  if (block.fuses(input) && kernel::takes_max_pool(input)) {
    return kernel::max_pool(input, {shape.kernel, shape.stride, shape.padding, shape.ceil});
  }
  return at::max_pool2d(input, shape.kernel, shape.stride, shape.padding, 1, shape.ceil);
}

at::Tensor global_average(const at::Tensor& input) {
  return input.mean({2, 3});
}

}  // namespace lockstep::model
