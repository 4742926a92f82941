// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/workspace.h"

#include <algorithm>

namespace lockstep::forecast {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kPaddedChannels = 8;         // what 16-bit tensor-core kernels want at least
constexpr int64_t kSplitSums = 8 * kMebibyte;  // measured: median 2 MiB in 16 bit, 8 in tf32, never above 16.5

// The sizes of a convolution: {batch, in, height, width, out, kernel_h, kernel_w, stride, groups}.
struct ConvolutionSizes {
  int64_t batch, in, height, width, out, kernel_h, kernel_w, stride, groups;

  int64_t out_height() const { return (height + stride - 1) / stride; }
  int64_t out_width() const { return (width + stride - 1) / stride; }
  int64_t input() const { return batch * in * height * width; }
  int64_t output() const { return batch * out * out_height() * out_width(); }
  int64_t weights() const { return out * in / groups * kernel_h * kernel_w; }
  bool first_layer() const { return in < kPaddedChannels && groups == 1; }
  bool depthwise() const { return groups == in && in > 1; }
  bool pointwise() const { return kernel_h == 1 && kernel_w == 1; }
};

int64_t sixteen_bit(const ConvolutionSizes& sizes, OperatorClass kind) {
  const bool weight_gradient = kind == OperatorClass::convolution_weight_gradient;
  if (sizes.first_layer()) {
    const int64_t images = sizes.batch * sizes.height * sizes.width * kPaddedChannels * 2;
    const int64_t weights = sizes.out * sizes.kernel_h * sizes.kernel_w * kPaddedChannels * 2;
    if (weight_gradient) return images + std::max(6 * kMebibyte, 10 * weights);
    return kind == OperatorClass::convolution && sizes.out >= 64 ? images + weights : 0;
  }
  if (!weight_gradient) return 0;
  return sizes.depthwise() ? sizes.weights() * 4096 : kSplitSums;
}

int64_t tf32(const ConvolutionSizes& sizes, OperatorClass kind) {
  if (!sizes.first_layer()) return sixteen_bit(sizes, kind);
  if (kind == OperatorClass::convolution) return 4 * (sizes.input() + sizes.weights());
  if (kind != OperatorClass::convolution_weight_gradient) return 0;
  const int64_t padded = sizes.batch * sizes.height * sizes.width * 4;  // to four channels
  return 4 * (padded + sizes.output()) + 6 * kMebibyte;
}

int64_t fp32(const ConvolutionSizes& sizes, OperatorClass kind) {
  if (sizes.first_layer() || sizes.groups > 1) return 0;
  const int64_t copies = sizes.input() + sizes.output() + (sizes.pointwise() ? 0 : sizes.weights());
  const bool winograd = kind == OperatorClass::convolution_weight_gradient && sizes.stride == 1 &&
                        sizes.kernel_h == 3 && sizes.kernel_w == 3;
  if (!winograd) return 4 * copies;
  const auto tiles = [](int64_t side) { return (side + 3) / 4; };
  const int64_t transformed =
      36 * tiles(sizes.height) * tiles(sizes.width) * sizes.batch * (sizes.in + sizes.out) + 4 * sizes.weights();
  return 4 * (copies + transformed);
}

// Flash attention sums the queries' gradients in fp32, over tokens rounded up to 128 and head sizes to 32.
int64_t attention_gradient_workspace(const Operator& call) {
  if (call.shape.size() != 5 || call.name.find("flash") == std::string::npos) return 0;
  const int64_t tokens = (call.shape[2] + 127) / 128 * 128;
  const int64_t head = (call.shape[4] + 31) / 32 * 32;
  return call.shape[0] * call.shape[1] * tokens * (head + 1) * 4;
}

}  // namespace

int64_t convolution_workspace(const Operator& call, const MemoryRules&) {
  if (call.shape.size() != 9) return 0;
  const auto& s = call.shape;
  const ConvolutionSizes sizes{
      s[0], s[1], s[2], s[3], s[4], s[5], s[6], std::max<int64_t>(s[7], 1), std::max<int64_t>(s[8], 1)};
  switch (call.type) {
    case NumberType::bf16:
    case NumberType::fp16:
      return sixteen_bit(sizes, call.kind);
    case NumberType::tf32:
      return tf32(sizes, call.kind);
    default:
      return fp32(sizes, call.kind);
  }
}

int64_t call_workspace(const Operator& call, const MemoryRules& rules) {
  switch (call.kind) {
    case OperatorClass::convolution:
    case OperatorClass::convolution_input_gradient:
    case OperatorClass::convolution_weight_gradient:
      return convolution_workspace(call, rules);
    case OperatorClass::attention_gradient:
      return attention_gradient_workspace(call);
    default:
      return 0;
  }
}

}  // namespace lockstep::forecast
