// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/chunk_norm.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::step {
namespace {

constexpr int64_t kLanes = 16;  // sums side by side: fixed, so that the order is, and enough for any vector unit

// A float's square is exact in double precision, so a fused multiply-add rounds no differently from two operations.
double squares_of(const float* values, int64_t count) {
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[static_cast<size_t>(lane)] += value * value;
    }
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    const double value = values[i];
    lanes[static_cast<size_t>(lane)] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// The elements as they lie in memory, as floats of the CPU.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  at::Tensor dense = tensor.detach();
  if (!dense.is_non_overlapping_and_dense()) dense = dense.contiguous();
  return dense.as_strided({dense.numel()}, {1}).to(at::kCPU, at::kFloat);
}

}  // namespace

std::vector<double> chunk_squares(const at::Tensor& tensor) {
  const at::Tensor flat = in_memory_order(tensor);
  const int64_t size = flat.numel();
  std::vector<double> squares(static_cast<size_t>((size + kNormChunk - 1) / kNormChunk));
  const float* const values = flat.const_data_ptr<float>();
  at::parallel_for(0, static_cast<int64_t>(squares.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t start = chunk * kNormChunk;
      squares[static_cast<size_t>(chunk)] = squares_of(values + start, std::min(kNormChunk, size - start));
    }
  });
  return squares;
}

double norm_of_squares(std::span<const double> squares) {
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

std::vector<double> chunk_norms(const std::vector<at::Tensor>& tensors) {
  std::vector<double> norms;
  for (const auto& tensor : tensors) norms.push_back(norm_of_squares(chunk_squares(tensor)));
  return norms;
}

double chunk_norm(const std::vector<at::Tensor>& tensors) {
  std::vector<double> all;
  for (const auto& tensor : tensors) {
    const auto squares = chunk_squares(tensor);
    all.insert(all.end(), squares.begin(), squares.end());
  }
  return norm_of_squares(all);
}

}  // namespace lockstep::step
