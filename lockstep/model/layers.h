// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>

#include <string>
#include <vector>

#include "lockstep/kernel/tokens.h"
#include "lockstep/model/batch_norm.h"
#include "lockstep/model/network.h"

// The layers that networks are built of: thin, without state of their own. Their tensors live in the block that owns
// them; a layer remembers where. Declared in the order of the reference, members register in that order too.
//
// What a tensor is, the step reads off its name and its dimensions; a new layer keeps to these rules:
// - A layer is a norm when its "<layer>.weight" has one dimension: weight and bias of it stay in fp32 where the others
//   are cast to 16 bit (step/precision.cpp). Any other vector (a layer scale, a token) must not be called "weight".
// - A parameter with more than one dimension gets weight decay and, of lars and lamb, a step length of its own; a
//   vector gets neither, unless training.optimizer.decay_norm_and_bias (step/optimizer.cpp).
// - Tensors of four dimensions lie in the order of model.layout.
// - A classifier is made by make_classifier: weights of another class count leave it fresh (model/weights.cpp).
namespace lockstep::model {

// How a fresh tensor is filled.
struct Fill {
  enum class Kind { constant, uniform, normal, truncated_normal };  // truncated: within [-2, 2], as in the references
  Kind kind = Kind::constant;
  double scale = 0;  // the constant, half the range, or the standard deviation

  static Fill constant(double value) { return {Kind::constant, value}; }
  static Fill uniform(double bound) { return {Kind::uniform, bound}; }
  static Fill normal(double deviation) { return {Kind::normal, deviation}; }
  static Fill truncated_normal(double deviation) { return {Kind::truncated_normal, deviation}; }
};

// Makes fresh tensors: values always come from one CPU generator, so that every rank and device gets the same ones.
class Maker {
 public:
  Maker(int64_t seed, at::Device device, Values values = Values::fresh,
        spec::Layout layout = spec::Layout::channels_last);
  at::Tensor make(at::IntArrayRef shape, Fill fill);

 private:
  at::Generator generator_;
  at::Device device_;
  Values values_;
  at::MemoryFormat images_;  // of tensors with four dimensions
};

// Where a layer stands in the network: the block that owns its tensors and the prefix of their names.
struct Site {
  Block& block;
  Maker& maker;
  std::string prefix;

  Site in(const std::string& name) const { return {block, maker, prefix + name + "."}; }
};

// A tensor of a block, found by index at each use: the step may have exchanged it.
class Parameter {
 public:
  Parameter() = default;  // absent
  Parameter(const Site& site, const std::string& name, at::IntArrayRef shape, Fill fill);
  explicit operator bool() const { return block_ != nullptr; }
  const at::Tensor& operator()() const { return block_->parameters[index_].tensor; }
  const Block& block() const { return *block_; }

 private:
  const Block* block_ = nullptr;
  size_t index_ = 0;
};

class Buffer {
 public:
  Buffer(const Site& site, const std::string& name, at::IntArrayRef shape, Fill fill);
  const at::Tensor& operator()() const { return block_->buffers[index_].tensor; }

 private:
  const Block* block_;
  size_t index_;
};

// kaiming_fan_out: as torch.nn.init, which counts the outputs of all groups; ..._of_group: as TensorFlow, those of one.
// A bias starts at 0, but with torch_default.
enum class ConvInit {
  kaiming_fan_in,
  kaiming_fan_out,
  kaiming_fan_out_of_group,
  truncated,
  truncated_002,
  uniform_fan_in,
  normal_001,
  he_uniform,  // as torch.nn.init.kaiming_uniform_ for ReLU
  torch_default
};

struct ConvShape {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
  ConvInit init = ConvInit::kaiming_fan_out;
};

class Conv2d {
 public:
  Conv2d(const Site& site, const ConvShape& shape);
  at::Tensor operator()(const at::Tensor& input) const;  // [batch, in, height, width] -> [batch, out, ...]
  // TensorFlow's "SAME": as much padding as the size needs, the odd one at the right and bottom.
  at::Tensor same_padded(const at::Tensor& input) const;
  // Of windows side by side, without padding: [batch, windows, out].
  at::Tensor patches(const at::Tensor& input) const;

 private:
  ConvShape shape_;
  Parameter weight_;
  Parameter bias_;
};

// A convolution the other way round: every pixel spreads over kernel x kernel, `stride` apart. [batch, in, h, w] ->
// [batch, out, (h - 1) * stride + kernel, ...]; no padding, no groups.
class ConvTranspose2d {
 public:
  ConvTranspose2d(const Site& site, const ConvShape& shape);
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  int64_t stride_;
  Parameter weight_;  // [in, out, kernel, kernel]
  Parameter bias_;
};

struct NormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;
};

class BatchNorm2d {
 public:
  BatchNorm2d(const Site& site, int64_t channels, NormOptions options = {});
  // While training by the block's rule, if it has one.
  at::Tensor operator()(const at::Tensor& input, Mode mode) const { return run(input, mode, {}, false); }
  // relu(norm(input) + added): a GPU does it in one go. Not given: nothing is added.
  at::Tensor rectified(const at::Tensor& input, Mode mode, const at::Tensor& added = {}) const {
    return run(input, mode, added, true);
  }

 private:
  at::Tensor run(const at::Tensor& input, Mode mode, const at::Tensor& added, bool relu) const;

  const Block* block_;
  NormOptions options_;
  Parameter weight_;
  Parameter bias_;
  Buffer mean_;
  Buffer variance_;
};

enum class LinearInit { torch_default, zero_bias, truncated_002, truncated_001, normal_001 };

class Linear {
 public:
  Linear(const Site& site, int64_t in, int64_t out, LinearInit init = LinearInit::torch_default);
  at::Tensor operator()(const at::Tensor& input) const;
  at::Tensor gelu(const at::Tensor& input) const;  // of its output

 private:
  Parameter weight_;
  Parameter bias_;
};

// The layer that gives the logits: weights of another class count leave it as it is.
Linear make_classifier(const Site& site, int64_t in, int64_t classes, LinearInit init = LinearInit::torch_default);

class LayerNorm {
 public:
  LayerNorm(const Site& site, int64_t width, double epsilon);
  at::Tensor operator()(const at::Tensor& input) const;
  // sum = input + branch (undefined: the input), and the norm of it: read on in the sum, not in the input, so that a
  // GPU adds the gradients of both in one pass.
  kernel::SumAndNorm after_sum(const at::Tensor& input, const at::Tensor& branch) const;

 private:
  double epsilon_;
  int64_t width_;
  Parameter weight_;
  Parameter bias_;
};

// Drops whole samples of a residual branch with probability `rate` and scales up the rest; needs a training mode.
// The numbers come from the generator of `block`.
at::Tensor drop_path(const Block& block, const at::Tensor& branch, double rate, Mode mode);
at::Tensor dropout(const Block& block, const at::Tensor& input, double rate, Mode mode);

struct PoolShape {
  int64_t kernel = 2, stride = 2, padding = 0;
  bool ceil = false;  // a window that reaches beyond the map counts
};
at::Tensor max_pool(const Block& block, const at::Tensor& input, const PoolShape& shape);

at::Tensor global_average(const at::Tensor& input);  // [batch, channels, height, width] -> [batch, channels]

}  // namespace lockstep::model
