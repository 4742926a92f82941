// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using Floats4 = float __attribute__((vector_size(16)));
using Floats8 = float __attribute__((vector_size(32)));

struct Job {
  const Image* image;
  const Resampler::Taps* x;
  const Resampler::Taps* y;
  int64_t first_column;  // what the row buffer's first pixel shows
  int64_t num_columns;
  float* row;                 // [num_columns * 3 + 1]
  const float* pair_weights;  // [num_outputs / 2][count][2][4]: x's, each as often as it is needed
  PixelTarget out;
  float* shown_row;  // [num_outputs * 3 + 1], of halves and bytes
  Floats4 factor;
  Floats4 offset;
};

// Adds `count` weighted source rows: row[i] (+)= sum of weights[t] * source_t[i]. A plain loop: g++ 12 makes good
// vector code of it at -O3, and scalar code of a byte vector's explicit conversion.
template <int count>
[[gnu::always_inline]] inline void add_rows(const uint8_t* __restrict source, int64_t stride, const float* weights,
                                            int64_t length, bool first, float* __restrict row) {
  float w[count];
  for (int t = 0; t < count; ++t) w[t] = weights[t];
  if (first) {
    for (int64_t i = 0; i < length; ++i) {
      float sum = 0;
      for (int t = 0; t < count; ++t) sum += w[t] * static_cast<float>(source[t * stride + i]);
      row[i] = sum;
    }
  } else {
    for (int64_t i = 0; i < length; ++i) {
      float sum = row[i];
      for (int t = 0; t < count; ++t) sum += w[t] * static_cast<float>(source[t * stride + i]);
      row[i] = sum;
    }
  }
}

[[gnu::always_inline]] inline void mix_rows(const Job& job, int64_t y) {
  const int64_t stride = job.image->width * 3, length = job.num_columns * 3;
  const uint8_t* source = job.image->row(job.y->first[static_cast<size_t>(y)]) + job.first_column * 3;
  const float* weights = job.y->weights.data() + y * job.y->count;
  int64_t t = 0;
  for (; t + 4 <= job.y->count; t += 4) {
    add_rows<4>(source + t * stride, stride, weights + t, length, t == 0, job.row);
  }
  const bool first = t == 0;
  source += t * stride, weights += t;
  switch (job.y->count - t) {
    case 1:
      return add_rows<1>(source, stride, weights, length, first, job.row);
    case 2:
      return add_rows<2>(source, stride, weights, length, first, job.row);
    case 3:
      return add_rows<3>(source, stride, weights, length, first, job.row);
    default:
      return;
  }
}

// A pixel is read as four floats (the fourth belongs to the next one) and written as four: the next pixel overwrites
// the fourth, only the very last is written as three. Two pixels at a time. `fixed` is the number of taps, or 0 for
// any.
template <int fixed>
[[gnu::always_inline]] inline void mix_columns(const Job& job, float* out) {
  const auto num_outputs = static_cast<int64_t>(job.x->first.size());
  const int64_t count = fixed > 0 ? fixed : job.x->count;
  const int32_t* firsts = job.x->first.data();
  const float* row = job.row - job.first_column * 3;
  const auto factor = __builtin_shufflevector(job.factor, job.factor, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto offset = __builtin_shufflevector(job.offset, job.offset, 0, 1, 2, 3, 4, 5, 6, 7);
  const float* weights = job.pair_weights;
  int64_t i = 0;
  for (; i + 2 < num_outputs; i += 2) {
    const float* left = row + int64_t{firsts[i]} * 3;
    const float* right = row + int64_t{firsts[i + 1]} * 3;
    Floats8 sum{};
    for (int64_t t = 0; t < count; ++t, weights += 8) {
      Floats4 a, b;
      std::memcpy(&a, left + 3 * t, sizeof a);
      std::memcpy(&b, right + 3 * t, sizeof b);
      Floats8 weight;
      std::memcpy(&weight, weights, sizeof weight);
      sum += weight * __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    sum = sum * factor + offset;
    std::memcpy(out + 3 * i, &sum, sizeof(Floats4));
    const Floats4 second = __builtin_shufflevector(sum, sum, 4, 5, 6, 7);
    std::memcpy(out + 3 * (i + 1), &second, sizeof second);
  }
  for (; i < num_outputs; ++i) {
    const float* source = row + int64_t{firsts[i]} * 3;
    Floats4 sum{};
    for (int64_t t = 0; t < count; ++t) {
      Floats4 pixel;
      std::memcpy(&pixel, source + 3 * t, sizeof pixel);
      sum += job.x->weights[static_cast<size_t>(i * count + t)] * pixel;
    }
    sum = sum * job.factor + job.offset;
    std::memcpy(out + 3 * i, &sum, 3 * sizeof(float));
  }
}

[[gnu::always_inline]] inline void pack_into(const float* __restrict values, int64_t count, uint16_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = __builtin_bit_cast(uint32_t, values[i]);
    out[i] = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
}

// Of values in 0 .. 255 with a half added: cutting rounds them.
[[gnu::always_inline]] inline void pack_into(const float* __restrict values, int64_t count, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i] < 0 ? 0 : values[i] > 255 ? 255 : values[i];
    out[i] = static_cast<uint8_t>(static_cast<int32_t>(value));
  }
}

template <int fixed>
[[gnu::always_inline]] inline void run_rows_of(const Job& job) {
  const auto num_rows = static_cast<int64_t>(job.y->first.size());
  const auto row_length = static_cast<int64_t>(job.x->first.size()) * 3;
  for (int64_t y = 0; y < num_rows; ++y) {
    mix_rows(job, y);
    mix_columns<fixed>(job, job.out.floats ? job.out.floats + y * row_length : job.shown_row);
    if (job.out.halves) pack_into(job.shown_row, row_length, job.out.halves + y * row_length);
    if (job.out.bytes) pack_into(job.shown_row, row_length, job.out.bytes + y * row_length);
  }
}

[[gnu::always_inline]] inline void run_rows(const Job& job) {
  switch (job.x->count) {  // two taps enlarge, three and four shrink to a half: nearly every crop
    case 2:
      return run_rows_of<2>(job);
    case 3:
      return run_rows_of<3>(job);
    case 4:
      return run_rows_of<4>(job);
    default:
      return run_rows_of<0>(job);
  }
}

// The same text compiled for two kinds of CPU. (target_clones would do it through an ifunc, which sanitizers and
// static functions do not like.)
#if defined(__clang__)
#define LOCKSTEP_VECTORISED  // clang vectorises at -O2
#else
#define LOCKSTEP_VECTORISED __attribute__((optimize("O3")))
#endif

#if defined(__x86_64__)
LOCKSTEP_VECTORISED __attribute__((target("avx2,fma"))) void run_rows_avx2(const Job& job) {
  run_rows(job);
}
#endif

#if defined(__x86_64__)
LOCKSTEP_VECTORISED __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512"))) void
run_rows_avx512(const Job& job) {
  run_rows(job);
}
#endif

LOCKSTEP_VECTORISED void run_rows_plain(const Job& job) {
  run_rows(job);
}

void run_rows_with(VectorUnit unit, const Job& job) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512) return run_rows_avx512(job);
  if (unit == VectorUnit::avx2) return run_rows_avx2(job);
#endif
  base::ensure(unit == VectorUnit::plain, "a vector unit that this CPU has");
  run_rows_plain(job);
}

}  // namespace

std::vector<VectorUnit> vector_units() {
  std::vector<VectorUnit> units{VectorUnit::plain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    units.push_back(VectorUnit::avx2);
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (wide && __builtin_cpu_supports("avx512vl")) units.push_back(VectorUnit::avx512);
  }
#endif
  return units;
}

void Resampler::fill(const Axis& axis, Taps& taps) {
  const double width = std::max(axis.scale, 1.0);  // the triangle reaches this far on each side
  const int64_t span = axis.high - axis.low;
  taps.count = std::min(static_cast<int64_t>(std::ceil(2 * width)), span);
  taps.first.resize(static_cast<size_t>(axis.num_outputs));
  taps.weights.assign(static_cast<size_t>(axis.num_outputs * taps.count), 0);
  for (int64_t i = 0; i < axis.num_outputs; ++i) {
    const int64_t position = axis.reversed ? axis.num_outputs - 1 - i : i;
    const double center = axis.begin + (static_cast<double>(position) + 0.5) * axis.scale;
    auto begin = static_cast<int64_t>(std::floor(center - width + 0.5));
    auto end = static_cast<int64_t>(std::ceil(center + width - 0.5));
    begin = std::clamp(begin, axis.low, axis.high - 1);
    end = std::clamp(end, begin + 1, std::min(axis.high, begin + taps.count));
    const int64_t first = std::min(begin, axis.high - taps.count);  // so that all `count` pixels exist
    float* weights = taps.weights.data() + i * taps.count;
    double sum = 0;
    for (int64_t j = begin; j < end; ++j) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(j) + 0.5 - center) / width);
      weights[j - first] = static_cast<float>(weight);
      sum += weight;
    }
    if (sum <= 0) weights[begin - first] = 1, sum = 1;  // an interval beyond the edge shows the edge
    for (int64_t t = 0; t < taps.count; ++t) weights[t] = static_cast<float>(weights[t] / sum);
    taps.first[static_cast<size_t>(i)] = static_cast<int32_t>(first);
  }
}

void pack_halves(const float* values, int64_t count, uint16_t* out) {
  pack_into(values, count, out);
}

void pack_bytes(const float* values, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i] * 255 + 0.5f;
    pack_into(&value, 1, out + i);
  }
}

void Resampler::run(const Image& image, const Axis& x, const Axis& y, const Normalisation& normalisation,
                    PixelTarget out) {
  base::ensure(x.low >= 0 && x.low < x.high && x.high <= image.width, "columns within the image");
  base::ensure(y.low >= 0 && y.low < y.high && y.high <= image.height, "rows within the image");
  fill(x, x_taps_);
  fill(y, y_taps_);
  const auto [left, right] = std::minmax(x_taps_.first.front(), x_taps_.first.back());
  Job job{.image = nullptr,
          .x = nullptr,
          .y = nullptr,
          .first_column = 0,
          .num_columns = 0,
          .row = nullptr,
          .pair_weights = nullptr,
          .out = out,
          .shown_row = nullptr,
          .factor = {},
          .offset = {}};
  job.image = &image;
  job.x = &x_taps_;
  job.y = &y_taps_;
  job.first_column = left;
  job.num_columns = right + x_taps_.count - left;
  row_.resize(static_cast<size_t>(job.num_columns * 3 + 1));
  row_.back() = 0;
  job.row = row_.data();
  if (!out.floats) shown_row_.resize(static_cast<size_t>(x.num_outputs * 3 + 1));
  job.shown_row = shown_row_.data();
  for (int c = 0; c < 3; ++c) {
    const auto channel = static_cast<size_t>(c);
    job.factor[c] = out.bytes ? 1 : 1 / (255 * normalisation.std[channel]);
    job.offset[c] = out.bytes ? 0.5f : -normalisation.mean[channel] / normalisation.std[channel];
  }
  pair_weights_.resize(static_cast<size_t>(x.num_outputs * x_taps_.count * 4));
  float* weight = pair_weights_.data();
  for (int64_t i = 0; i + 1 < x.num_outputs; i += 2) {
    for (int64_t t = 0; t < x_taps_.count; ++t, weight += 8) {
      const auto at = static_cast<size_t>(i * x_taps_.count + t);
      std::fill_n(weight, 4, x_taps_.weights[at]);
      std::fill_n(weight + 4, 4, x_taps_.weights[at + static_cast<size_t>(x_taps_.count)]);
    }
  }
  job.pair_weights = pair_weights_.data();
  run_rows_with(unit_, job);
}

}  // namespace lockstep::image
