// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/roi_align.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernel/box_math.h"

namespace lockstep::kernel {
namespace {

using Maps = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Forward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const at::Tensor&, int64_t, int64_t);
using Backward = Maps(const at::Tensor&, const at::Tensor&, at::IntArrayRef, int64_t);

constexpr int64_t kChannelChunk = 32;  // of one thread's gradients

// One map, channels last.
template <class Value>
struct Map {
  Value* data;
  int64_t height, width, channels;

  Value* pixel(int64_t image, int64_t row, int64_t column) const {
    return data + ((image * height + row) * width + column) * channels;
  }
};

// Where a region's samples lie in its map: [bins * sampling] in each direction.
struct Samples {
  std::vector<PixelPair> rows, columns;

  Samples(const Box& box, float scale, int64_t height, int64_t width, int64_t bins, int64_t sampling) {
    const BinAxis down(box.y1, box.y2, scale, bins), across(box.x1, box.x2, scale, bins);
    for (int64_t i = 0; i < bins * sampling; ++i) {
      rows.push_back(pixels_at(down.sample(i / sampling, i % sampling, sampling), height));
      columns.push_back(pixels_at(across.sample(i / sampling, i % sampling, sampling), width));
    }
  }
};

float scale_of(int64_t level) {
  return 1.0F / static_cast<float>(kFirstStride << level);
}

template <class Value>
using FourMaps = std::array<Map<Value>, kLevels>;

template <class Value>
Map<Value> map_of(const at::Tensor& tensor) {
  return {static_cast<Value*>(tensor.data_ptr()), tensor.size(2), tensor.size(3), tensor.size(1)};
}

// Calls `use` with bin, pixels and weights of every sample of a region, the bins row by row.
template <class Use>
void each_sample(const Samples& samples, int64_t bins, int64_t sampling, const Use& use) {
  for (int64_t bin = 0; bin < bins * bins; ++bin) {
    for (int64_t i = 0; i < sampling; ++i) {
      for (int64_t k = 0; k < sampling; ++k) {
        use(bin, samples.rows[static_cast<size_t>(bin / bins * sampling + i)],
            samples.columns[static_cast<size_t>(bin % bins * sampling + k)]);
      }
    }
  }
}

template <class Value>
void pool_region(const Map<const Value>& map, int64_t image, const Box& box, float scale, const RoiOptions& options,
                 Value* out) {
  using Sum = at::opmath_type<Value>;
  const Samples samples(box, scale, map.height, map.width, options.size, options.sampling);
  const int64_t channels = map.channels;
  std::vector<Sum> sums(static_cast<size_t>(options.size * options.size * channels), 0);
  each_sample(samples, options.size, options.sampling,
              [&](int64_t bin, const PixelPair& rows, const PixelPair& columns) {
                const auto at = [&](int64_t row, int64_t column) { return map.pixel(image, row, column); };
                const Value *a = at(rows.low, columns.low), *b = at(rows.low, columns.high),
                            *c = at(rows.high, columns.low), *d = at(rows.high, columns.high);
                const Sum wa = rows.low_weight * columns.low_weight, wb = rows.low_weight * columns.high_weight,
                          wc = rows.high_weight * columns.low_weight, wd = rows.high_weight * columns.high_weight;
                Sum* sum = sums.data() + bin * channels;
                for (int64_t i = 0; i < channels; ++i) {
                  sum[i] += wa * static_cast<Sum>(a[i]) + wb * static_cast<Sum>(b[i]) + wc * static_cast<Sum>(c[i]) +
                            wd * static_cast<Sum>(d[i]);
                }
              });
  const auto count = static_cast<Sum>(options.sampling * options.sampling);
  std::transform(sums.begin(), sums.end(), out, [&](Sum sum) { return static_cast<Value>(sum / count); });
}

at::Tensor forward_meta(const at::Tensor& map4, const at::Tensor& /*map8*/, const at::Tensor& /*map16*/,
                        const at::Tensor& /*map32*/, const at::Tensor& boxes, int64_t size, int64_t /*sampling*/) {
  return at::empty({boxes.size(0) * boxes.size(1), map4.size(1), size, size}, map4.options(),
                   at::MemoryFormat::ChannelsLast);
}

at::Tensor forward_cpu(const at::Tensor& map4, const at::Tensor& map8, const at::Tensor& map16, const at::Tensor& map32,
                       const at::Tensor& boxes, int64_t size, int64_t sampling) {
  const auto lying = [](const at::Tensor& map) { return map.contiguous(at::MemoryFormat::ChannelsLast); };
  const Pyramid maps{lying(map4), lying(map8), lying(map16), lying(map32)};
  const at::Tensor regions = boxes.contiguous();
  const auto* box = reinterpret_cast<const Box*>(regions.const_data_ptr<float>());
  at::Tensor out = forward_meta(map4, map8, map16, map32, boxes, size, sampling);
  const int64_t per_image = boxes.size(1), region_size = map4.size(1) * size * size;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, map4.scalar_type(), "roi_align", [&] {
    const FourMaps<const scalar_t> four{map_of<const scalar_t>(maps[0]), map_of<const scalar_t>(maps[1]),
                                        map_of<const scalar_t>(maps[2]), map_of<const scalar_t>(maps[3])};
    auto* to = out.data_ptr<scalar_t>();
    at::parallel_for(0, out.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t level = level_of(box[i]);
        pool_region<scalar_t>(four[static_cast<size_t>(level)], i / per_image, box[i], scale_of(level),
                              {size, sampling}, to + i * region_size);
      }
    });
  });
  return out;
}

// The gradients of the four maps of these sizes (height and width of each, one after the other).
Pyramid gradient_maps(const at::Tensor& gradient, const at::Tensor& boxes, at::IntArrayRef sizes, at::ScalarType type) {
  Pyramid maps;
  for (size_t i = 0; i < maps.size(); ++i) {
    maps[i] = at::empty({boxes.size(0), gradient.size(1), sizes[2 * i], sizes[2 * i + 1]},
                        gradient.options().dtype(type), at::MemoryFormat::ChannelsLast);
  }
  return maps;
}

Maps backward_meta(const at::Tensor& gradient, const at::Tensor& boxes, at::IntArrayRef sizes, int64_t /*sampling*/) {
  auto [a, b, c, d] = gradient_maps(gradient, boxes, sizes, gradient.scalar_type());
  return {a, b, c, d};
}

// Of some channels of one image. Nobody else writes to these, so the order of the sums is that of the boxes.
template <class Value>
void spread_regions(const FourMaps<at::opmath_type<Value>>& maps, const Value* gradient, const Box* boxes,
                    int64_t count, int64_t image, int64_t first, int64_t last, const RoiOptions& options) {
  using Sum = at::opmath_type<Value>;
  const int64_t channels = maps[0].channels;
  const Sum share = static_cast<Sum>(1) / static_cast<Sum>(options.sampling * options.sampling);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t level = level_of(boxes[i]);
    const Map<Sum>& map = maps[static_cast<size_t>(level)];
    const Samples samples(boxes[i], scale_of(level), map.height, map.width, options.size, options.sampling);
    const Value* from = gradient + i * options.size * options.size * channels;
    each_sample(samples, options.size, options.sampling,
                [&](int64_t bin, const PixelPair& rows, const PixelPair& columns) {
                  const auto add = [&](int64_t row, int64_t column, float weight) {
                    if (weight == 0) return;
                    const Sum part = static_cast<Sum>(weight) * share;
                    Sum* to = map.pixel(image, row, column);
                    for (int64_t c = first; c < last; ++c) to[c] += part * static_cast<Sum>(from[bin * channels + c]);
                  };
                  add(rows.low, columns.low, rows.low_weight * columns.low_weight);
                  add(rows.low, columns.high, rows.low_weight * columns.high_weight);
                  add(rows.high, columns.low, rows.high_weight * columns.low_weight);
                  add(rows.high, columns.high, rows.high_weight * columns.high_weight);
                });
  }
}

Maps backward_cpu(const at::Tensor& gradient, const at::Tensor& boxes, at::IntArrayRef sizes, int64_t sampling) {
  const at::Tensor from = gradient.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor regions = boxes.contiguous();
  const auto* box = reinterpret_cast<const Box*>(regions.const_data_ptr<float>());
  const int64_t per_image = boxes.size(1), channels = gradient.size(1), size = gradient.size(2);
  const int64_t chunks = (channels + kChannelChunk - 1) / kChannelChunk;
  Pyramid maps;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, gradient.scalar_type(), "roi_align_backward", [&] {
    using Sum = at::opmath_type<scalar_t>;
    maps = gradient_maps(gradient, boxes, sizes, c10::CppTypeToScalarType<Sum>::value);
    for (at::Tensor& map : maps) map.zero_();
    const FourMaps<Sum> four{map_of<Sum>(maps[0]), map_of<Sum>(maps[1]), map_of<Sum>(maps[2]), map_of<Sum>(maps[3])};
    at::parallel_for(0, boxes.size(0) * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / chunks, first = i % chunks * kChannelChunk;
        spread_regions<scalar_t>(four, from.const_data_ptr<scalar_t>() + image * per_image * channels * size * size,
                                 box + image * per_image, per_image, image, first,
                                 std::min(first + kChannelChunk, channels), {size, sampling});
      }
    });
  });
  const auto as_given = [&](const at::Tensor& map) { return map.to(gradient.scalar_type()); };
  return {as_given(maps[0]), as_given(maps[1]), as_given(maps[2]), as_given(maps[3])};
}

at::Tensor call_forward(const Pyramid& maps, const at::Tensor& boxes, const RoiOptions& options) {
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::roi_align", "").typed<Forward>();
  return operation.call(maps[0], maps[1], maps[2], maps[3], boxes, options.size, options.sampling);
}

class RoiAlign final : public torch::autograd::Function<RoiAlign> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& map4, const at::Tensor& map8,
                            const at::Tensor& map16, const at::Tensor& map32, const at::Tensor& boxes, int64_t size,
                            int64_t sampling) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Pyramid maps{map4, map8, map16, map32};
    std::vector<int64_t> sizes;
    for (const at::Tensor& map : maps) sizes.insert(sizes.end(), {map.size(2), map.size(3)});
    context->save_for_backward({boxes});
    context->saved_data["sizes"] = sizes;
    context->saved_data["sampling"] = sampling;
    return call_forward(maps, boxes, {size, sampling});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::roi_align_backward", "").typed<Backward>();
    const auto sizes = context->saved_data["sizes"].toIntVector();
    auto [a, b, c, d] =
        operation.call(gradients[0], context->get_saved_variables()[0], sizes, context->saved_data["sampling"].toInt());
    return {a, b, c, d, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor forward_autograd(const at::Tensor& map4, const at::Tensor& map8, const at::Tensor& map16,
                            const at::Tensor& map32, const at::Tensor& boxes, int64_t size, int64_t sampling) {
  return RoiAlign::apply(map4, map8, map16, map32, boxes, size, sampling);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def(
      "roi_align(Tensor map4, Tensor map8, Tensor map16, Tensor map32, Tensor boxes, int size, int sampling) -> "
      "Tensor");
  library.def(
      "roi_align_backward(Tensor gradient, Tensor boxes, int[] sizes, int sampling) -> (Tensor, Tensor, Tensor, "
      "Tensor)");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("roi_align", &forward_cpu);
  library.impl("roi_align_backward", &backward_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("roi_align", &forward_meta);
  library.impl("roi_align_backward", &backward_meta);
}

TORCH_LIBRARY_IMPL(lockstep, Autograd, library) {
  library.impl("roi_align", &forward_autograd);
}

at::Tensor roi_align(const Pyramid& maps, const at::Tensor& boxes, const RoiOptions& options) {
  base::ensure(boxes.dim() == 3 && boxes.size(0) == maps[0].size(0), "every image has boxes");
  return call_forward(maps, boxes, options);
}

}  // namespace lockstep::kernel
