// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/workspace.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/forecast/norm_workspace.h"

namespace lockstep::forecast {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kPaddedChannels = 8;         // what 16-bit tensor-core kernels want at least
constexpr double kSplitSums = 8 * kMebibyte;  // measured: median 2 MiB in 16 bit, 8 in tf32, never above 16.5
constexpr double kSplitSums16 = 2 * kMebibyte;
constexpr double kFewPixels = 2048;  // that a weight gradient sums over: below, nothing is split

// The sizes of a convolution: {batch, in, height, width, out, kernel_h, kernel_w, stride, groups}. In doubles: exact
// for every size that a GPU can hold, and no overflow whatever a recording claims.
struct ConvolutionSizes {
  double batch, in, height, width, out, kernel_h, kernel_w, stride, groups;

  double out_height() const { return std::ceil(height / stride); }
  double out_width() const { return std::ceil(width / stride); }
  double input() const { return batch * in * height * width; }
  double output() const { return batch * out * out_height() * out_width(); }
  double weights() const { return out * in / groups * kernel_h * kernel_w; }
  bool first_layer() const { return in < kPaddedChannels && groups == 1; }
  bool depthwise() const { return groups == in && in > 1; }
  bool pointwise() const { return kernel_h == 1 && kernel_w == 1; }
  bool patches() const { return kernel_h >= 14; }
  bool skips_pixels_of_few_channels() const { return pointwise() && stride == 2 && in <= 64; }
};

// The first layer: images are padded to eight channels. The gradient of its weights has sums besides; those of patches
// (a kernel of 14 and more) are larger than those of a stem.
double padded_images(const ConvolutionSizes& sizes, OperatorClass kind) {
  const double images = sizes.batch * sizes.height * sizes.width * kPaddedChannels * 2;
  const double weights = sizes.out * sizes.kernel_h * sizes.kernel_w * kPaddedChannels * 2;
  if (kind == OperatorClass::convolution) return sizes.out >= 64 ? images + weights : 0;
  if (kind == OperatorClass::convolution_input_gradient) return 0;
  return images + (sizes.patches() ? std::min(10 * weights, images) : std::min(6 * kMebibyte, 2 * images));
}

double sixteen_bit(const ConvolutionSizes& sizes, OperatorClass kind) {
  if (sizes.first_layer()) return padded_images(sizes, kind);
  if (kind == OperatorClass::convolution) {
    return sizes.skips_pixels_of_few_channels() ? 2 * (sizes.input() + sizes.output()) : 0;
  }
  if (kind == OperatorClass::convolution_input_gradient) return 0;
  if (sizes.depthwise()) return sizes.weights() * 32 * sizes.batch;
  return sizes.batch * sizes.out_height() * sizes.out_width() < kFewPixels ? 0 : kSplitSums;
}

double tf32(const ConvolutionSizes& sizes, OperatorClass kind) {
  if (!sizes.first_layer()) return sixteen_bit(sizes, kind);
  if (kind == OperatorClass::convolution) return 4 * (sizes.input() + sizes.weights());
  if (kind != OperatorClass::convolution_weight_gradient) return 0;
  const double padded = sizes.batch * sizes.height * sizes.width * 4;  // to four channels
  return 4 * (padded + sizes.output()) + 6 * kMebibyte;
}

// cuDNN takes Fourier transforms for the way forward of some 3x3 layers; which ones was read off 60 layers of ResNet,
// VGG, DenseNet and GoogLeNet, and holds for all of them but one.
bool by_fourier(const ConvolutionSizes& sizes) {
  if (sizes.kernel_h != 3 || sizes.kernel_w != 3 || sizes.stride != 1 || sizes.height != sizes.width) return false;
  if (sizes.height > 30) return sizes.height <= 62 && sizes.in == sizes.out && sizes.batch <= 32;
  const bool wide = std::fmod(sizes.in, 128) == 0 && std::fmod(sizes.out, 64) == 0 && sizes.out >= 128;
  return wide && (sizes.height > 14 || (sizes.height > 7 && (sizes.batch >= 64 || sizes.in >= 512)));
}

// The spectra of images and weights, twice, of tiles of 16, 32 or 64 pixels a side (half of them: the images are real).
double fourier(const ConvolutionSizes& sizes) {
  const double side = sizes.height <= 14 ? 16 : sizes.height <= 30 ? 32 : 64;
  const double spectrum = side * (side / 2 + 1) * 2;
  return 2 * sizes.in * (sizes.batch + sizes.out) * spectrum + sizes.weights();
}

// Back to the images cuDNN takes tiles of 32 pixels a side, two for a row of more than 30, each spectrum once.
double fourier_back(const ConvolutionSizes& sizes) {
  const bool taken = sizes.kernel_h == 3 && sizes.kernel_w == 3 && sizes.stride == 1 && sizes.height > 14 &&
                     sizes.height <= 62 && sizes.in >= 64;
  constexpr double kSpectrum = 32 * 17 * 2;
  const double tiles = sizes.height > 30 ? 2 : 1;
  return taken ? kSpectrum * (sizes.batch * (sizes.in + sizes.out) * tiles + sizes.in * sizes.out) : 0;
}

double copied_in_fp32(const ConvolutionSizes& sizes) {
  return sizes.input() + sizes.output() + (sizes.pointwise() ? 0 : sizes.weights());
}

double fp32(const ConvolutionSizes& sizes, OperatorClass kind) {
  const bool weight_gradient = kind == OperatorClass::convolution_weight_gradient;
  if (sizes.first_layer()) return weight_gradient && sizes.patches() ? 4 * sizes.input() : 0;
  if (sizes.groups > 1)
    return weight_gradient && sizes.depthwise() ? sizes.weights() * 400 : 0;  // measured: 12 to 1808
  const bool few_channels = sizes.skips_pixels_of_few_channels() || (sizes.pointwise() && sizes.in <= 32);
  if (kind == OperatorClass::convolution && few_channels) return 0;
  double more = 0;
  if (kind == OperatorClass::convolution && by_fourier(sizes)) more = fourier(sizes);
  if (kind == OperatorClass::convolution_input_gradient) more = fourier_back(sizes);
  if (weight_gradient) {
    if (sizes.stride != 1 || sizes.kernel_h != 3 || sizes.kernel_w != 3) return 0;
    const auto tiles = [](double side) { return std::ceil(side / 4); };  // Winograd
    more = 36 * tiles(sizes.height) * tiles(sizes.width) * sizes.batch * (sizes.in + sizes.out) + 4 * sizes.weights();
  }
  // Sixteen bytes more: they decide whether a free block of just that size will do.
  return 4 * (copied_in_fp32(sizes) + more) + 16;
}

// Of contiguous images. The kernels of tensor cores know channels-last ones only: every operand is copied there, and
// the result back, for the time of the call. A kernel of one pixel is a matrix product in either layout: nothing is
// copied. In fp32 it is the other way round, and so is nothing that channels-last images have copied. Depthwise layers
// of 32 bits are libtorch's own kernels, without scratch.
double contiguous(const Operator& call, const ConvolutionSizes& sizes) {
  if (call.type == NumberType::fp32 || call.type == NumberType::fp64) {
    return sizes.depthwise() ? 0 : std::max(0.0, fp32(sizes, call.kind) - 4 * copied_in_fp32(sizes));
  }
  const bool tf32 = call.type == NumberType::tf32;
  if (sizes.depthwise()) return tf32 ? 0 : call.bytes;
  const bool sums = call.kind == OperatorClass::convolution_weight_gradient &&
                    sizes.batch * sizes.out_height() * sizes.out_width() >= kFewPixels;
  return (sizes.pointwise() ? 0 : call.bytes) + (sums ? (tf32 ? kSplitSums : kSplitSums16) : 0);
}

// The memory-efficient kernel sums the queries' gradients in blocks of 64 tokens, or of 128 with heads above 64, each
// with a lock of 16 bytes for 64 tokens.
double efficient_gradient_workspace(const Operator& call) {
  const double side = call.shape[4] <= 64 ? 64 : 128;
  const double width = std::ceil(static_cast<double>(call.shape[4]) / side) * side;
  const double blocks = std::ceil(static_cast<double>(call.shape[2]) / side);
  return static_cast<double>(call.shape[0]) * static_cast<double>(call.shape[1]) * blocks * (side * width + side / 16) *
         4;
}

// The queries' gradients are summed in fp32 beside one value for each token. Flash attention rounds tokens up to 128
// and head sizes to 32; cuDNN's kernel does not.
double attention_gradient_workspace(const Operator& call) {
  if (call.shape.size() != 5) return 0;
  if (call.name.find("efficient") != std::string::npos) return efficient_gradient_workspace(call);
  const bool cudnn = call.name.find("cudnn") != std::string::npos;
  const auto whole = [&](size_t at, double unit) {
    return std::ceil(static_cast<double>(call.shape[at]) / unit) * unit;
  };
  const double rows = whole(0, 1) * whole(1, 1) * whole(2, cudnn ? 1 : 128);
  return rows * (whole(4, cudnn ? 1 : 32) + 1) * 4;
}

// A sum over the rows of a matrix, as a bias has for its gradient: each warp keeps sums of 128 columns, 32 apiece, and
// there are as many rows of warps as the GPU has room for, at most one for 16 rows. Columns are the last dimension;
// that it is such a sum shows in the bytes: what comes out is one row.
double row_sum_workspace(const Operator& call, const MemoryRules& rules) {
  if (call.shape.size() < 2 || rules.warps == 0 || call.name != "aten::sum") return 0;
  const auto columns = static_cast<double>(call.shape.back());
  double rows = 1;
  for (size_t i = 0; i + 1 < call.shape.size(); ++i) rows *= static_cast<double>(call.shape[i]);
  const double element = call.type == NumberType::bf16 || call.type == NumberType::fp16 ? 2 : 4;
  const bool one_row_comes_out = call.bytes == (rows + 1) * columns * element;
  if (!one_row_comes_out || rows < 256) return 0;
  const double across = std::ceil(columns / 128);
  const double down = std::min(std::ceil(static_cast<double>(rules.warps) / across), std::ceil(rows / 16));
  return columns * down * 32 * 4;
}

int64_t bytes_of(double bytes) {
  return static_cast<int64_t>(std::min(bytes, 0x1p50));
}

}  // namespace

int64_t convolution_workspace(const Operator& call, Layout layout) {
  if (call.shape.size() != 9) return 0;
  std::array<double, 9> s;
  std::copy(call.shape.begin(), call.shape.end(), s.begin());
  const ConvolutionSizes sizes{s[0], s[1], s[2], s[3], s[4], s[5], s[6], std::max(s[7], 1.0), std::max(s[8], 1.0)};
  if (layout == Layout::contiguous) return bytes_of(contiguous(call, sizes));
  switch (call.type) {
    case NumberType::bf16:
    case NumberType::fp16:
      return bytes_of(sixteen_bit(sizes, call.kind));
    case NumberType::tf32:
      return bytes_of(tf32(sizes, call.kind));
    default:
      return bytes_of(fp32(sizes, call.kind));
  }
}

int64_t call_workspace(const Operator& call, const MemoryRules& rules, Layout layout) {
  switch (call.kind) {
    case OperatorClass::convolution:
    case OperatorClass::convolution_input_gradient:
    case OperatorClass::convolution_weight_gradient:
      return convolution_workspace(call, layout);
    case OperatorClass::attention_gradient:
      return bytes_of(attention_gradient_workspace(call));
    case OperatorClass::reduction:
      return bytes_of(row_sum_workspace(call, rules));
    case OperatorClass::batch_norm:
    case OperatorClass::batch_norm_gradient:
    case OperatorClass::layer_norm_gradient:
      return norm_workspace(call);
    default:
      return 0;
  }
}

}  // namespace lockstep::forecast
