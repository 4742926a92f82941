// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/norm_workspace.h"

#include <algorithm>

namespace lockstep::forecast {
namespace {

int64_t pieces(int64_t value, int64_t size) {
  return (value + size - 1) / size;
}

int64_t last_power_of_2(int64_t value) {
  int64_t power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

struct Matrix {  // a norm's input: rows are what its statistics are taken over, [rows, channels]
  int64_t rows = 0;
  int64_t channels = 0;
};

// Bounded, so that nothing overflows whatever a recording claims.
Matrix matrix_of(const Operator& call, size_t channels) {
  if (channels >= call.shape.size()) return {};
  double rows = 1;
  for (size_t i = 0; i < call.shape.size(); ++i) rows *= i == channels ? 1 : static_cast<double>(call.shape[i]);
  return {static_cast<int64_t>(std::min(rows, 0x1p40)), std::min(call.shape[channels], int64_t{1} << 24)};
}

int64_t cudnn_forward(const Matrix& input, NumberType type) {
  const int64_t rows_of_block = type == NumberType::fp16 ? 160 : 64;
  const int64_t tiles = pieces(input.channels, 64);
  return 1072 + tiles * (516 * pieces(input.rows, rows_of_block) + 4);
}

int64_t cudnn_backward(const Matrix& input) {
  const int64_t tiles = pieces(input.channels, 64);
  return 1056 + tiles * (512 * pieces(input.rows, 96) + 4);
}

// Blocks of 512 threads, 16 values a thread; fewer than eight in a column exchange nothing. Each writes `sums` a
// channel.
int64_t native(const Matrix& input, int64_t sums) {
  constexpr int64_t kThreads = 512;
  constexpr int64_t kValues = 16;
  int64_t width = std::min<int64_t>(last_power_of_2(input.channels), 32);
  const int64_t height = std::min(last_power_of_2(pieces(input.rows, kValues)), kThreads / width);
  if (width * height != kThreads) width = std::min(last_power_of_2(input.channels), kThreads / height);
  const int64_t column = std::min<int64_t>(pieces(input.rows, height * kValues), 128);
  return column < 8 ? 0 : 4 * sums * input.channels * column;
}

int64_t layer_norm_weights(const Operator& call) {
  const Matrix input = matrix_of(call, call.shape.size() - 1);
  if (input.rows <= 65536 || input.channels <= 0) return 0;
  const bool half = call.type == NumberType::bf16 || call.type == NumberType::fp16;
  const int64_t partial = std::min(pieces(input.rows, 32), (int64_t{1} << 20) / input.channels);
  return 2 * partial * input.channels * (half ? 2 : 4);  // of the weights and of the biases
}

}  // namespace

int64_t norm_workspace(const Operator& call) {
  const bool cudnn = call.name == "aten::cudnn_batch_norm" || call.name == "aten::cudnn_batch_norm_backward";
  const Matrix input = matrix_of(call, 1);  // [batch, channels, height, width]
  if (call.kind == OperatorClass::layer_norm_gradient) return layer_norm_weights(call);
  if (input.rows <= 0 || input.channels <= 0 || call.phase == Phase::evaluate) return 0;
  if (call.kind == OperatorClass::batch_norm) return cudnn ? cudnn_forward(input, call.type) : native(input, 4);
  if (call.kind == OperatorClass::batch_norm_gradient) return cudnn ? cudnn_backward(input) : native(input, 2);
  return 0;
}

}  // namespace lockstep::forecast
