// SPDX-License-Identifier: Apache-2.0
// The operators of the room kernel, with the outputs and scratch memory of their CUDA kernels (plugins/cuda).
#include <ATen/core/List.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include "lockstep/trace/kernels.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using at::Tensor;
using forecast::OperatorClass;

constexpr double kOverlapFlops = 14;  // of one intersection over union
constexpr int64_t kWordBits = 64;

Tensor anchors(const Tensor& /*like*/, at::IntArrayRef grids, int64_t /*height*/, int64_t /*width*/) {
  int64_t cells = 0;
  for (size_t i = 0; i + 1 < grids.size(); i += 2) cells += grids[i] * grids[i + 1];
  Tensor result = make({3 * cells, 4}, at::kFloat);
  ran("lockstep::anchors", OperatorClass::elementwise, {}, {result});
  return result;
}

Tensor decode_boxes(const Tensor& boxes, const Tensor& deltas, const Tensor& shown, double /*position*/,
                    double /*size*/) {
  const Tensor from = boxes.contiguous(), moves = deltas.contiguous(), limits = shown.contiguous();
  Tensor result = make(deltas.sizes(), at::kFloat);
  ran("lockstep::decode_boxes", OperatorClass::elementwise, {from, moves, limits}, {result});
  return result;
}

Tensor encode_boxes(const Tensor& boxes, const Tensor& wanted, double /*position*/, double /*size*/) {
  const Tensor from = boxes.contiguous(), to = wanted.contiguous();
  Tensor result = make(boxes.sizes(), at::kFloat);
  ran("lockstep::encode_boxes", OperatorClass::elementwise, {from, to}, {result});
  return result;
}

// Every pair of an image's boxes is a bit of a table, which one block reads from the best box down.
std::tuple<Tensor, Tensor> nms(const Tensor& boxes, const Tensor& scores, const Tensor& groups, double /*threshold*/,
                               int64_t slots) {
  const Tensor all = boxes.contiguous(), kinds = groups.contiguous();
  const auto [sorted, order] = at::sort(scores, /*stable=*/true, 1, /*descending=*/true);
  const int64_t images = boxes.size(0), count = boxes.size(1);
  const Tensor repeats = make({images, count, (count + kWordBits - 1) / kWordBits}, at::kLong);
  Tensor indices = make({images, slots}, at::kLong);
  Tensor valid = make({images, slots}, at::kBool);
  const double pairs = static_cast<double>(images) * static_cast<double>(count) * static_cast<double>(count) / 2;
  ran("lockstep::nms", OperatorClass::reduction, {all, sorted, order, kinds, repeats}, {repeats, indices, valid},
      {.flops = kOverlapFlops * pairs, .shape = boxes.sizes().vec(), .launches = 2});
  return {indices, valid};
}

Tensor match(const Tensor& boxes, const Tensor& objects, const Tensor& labels, double /*low*/, double /*high*/,
             bool best_of_object) {
  const Tensor from = boxes.contiguous(), to = objects.contiguous(), there = labels.contiguous();
  const int64_t images = objects.size(0), count = boxes.size(1), slots = objects.size(1);
  const Tensor most = best_of_object ? at::zeros({images, slots}, objects.options()) : Tensor();
  Tensor result = make({images, count}, at::kLong);
  const int64_t passes = best_of_object ? 2 : 1;
  ran("lockstep::match", OperatorClass::reduction, {from, to, there, most}, {result},
      {.flops = kOverlapFlops * static_cast<double>(passes * images * count) * static_cast<double>(slots),
       .shape = {images, count, slots},
       .launches = passes});
  return result;
}

Tensor roi_align(const Tensor& map4, const Tensor& map8, const Tensor& map16, const Tensor& map32, const Tensor& boxes,
                 int64_t size, int64_t sampling) {
  const auto lying = [](const Tensor& map) { return map.contiguous(at::MemoryFormat::ChannelsLast); };
  const Tensor maps[] = {lying(map4), lying(map8), lying(map16), lying(map32)};
  const Tensor regions = boxes.contiguous();
  Tensor result = make({boxes.size(0) * boxes.size(1), map4.size(1), size, size}, map4.scalar_type(),
                       at::MemoryFormat::ChannelsLast);
  // Four pixels a sample; most of them are found in the cache.
  const double samples = static_cast<double>(result.numel()) * static_cast<double>(sampling * sampling);
  ran("lockstep::roi_align", OperatorClass::pooling, {maps[0], maps[1], maps[2], maps[3], regions}, {result},
      {.flops = 8 * samples, .shape = result.sizes().vec()});
  return result;
}

// Summed up in fp32, whatever the type of the maps.
std::tuple<Tensor, Tensor, Tensor, Tensor> roi_align_backward(const Tensor& gradient, const Tensor& boxes,
                                                              at::IntArrayRef sizes, int64_t sampling) {
  const Tensor from = gradient.contiguous(at::MemoryFormat::ChannelsLast), regions = boxes.contiguous();
  std::array<Tensor, 4> maps;
  for (size_t i = 0; i < maps.size(); ++i) {
    maps[i] = make({boxes.size(0), gradient.size(1), sizes[2 * i], sizes[2 * i + 1]}, at::kFloat,
                   at::MemoryFormat::ChannelsLast)
                  .zero_();
  }
  const double samples = static_cast<double>(gradient.numel()) * static_cast<double>(sampling * sampling);
  ran("lockstep::roi_align_backward", OperatorClass::pooling_gradient, {from, regions},
      {maps[0], maps[1], maps[2], maps[3]}, {.flops = 8 * samples, .shape = gradient.sizes().vec()});
  for (Tensor& map : maps) map = map.to(gradient.scalar_type());
  return {maps[0], maps[1], maps[2], maps[3]};
}

std::tuple<Tensor, Tensor> mask_targets(const Tensor& masks, const Tensor& objects, const Tensor& shown,
                                        const Tensor& matches, const Tensor& regions, int64_t size) {
  const Tensor all[] = {masks.contiguous(), objects.contiguous(), shown.contiguous(), matches.contiguous(),
                        regions.contiguous()};
  Tensor values = make({matches.size(0), matches.size(1), size, size}, at::kFloat);
  Tensor present = make(matches.sizes(), at::kBool);
  const auto cells = static_cast<double>(masks.size(3));
  const double products = static_cast<double>(matches.numel() * size) * cells * (cells + static_cast<double>(size));
  ran("lockstep::mask_targets", OperatorClass::pooling, {all[0], all[1], all[2], all[3], all[4]}, {values, present},
      {.flops = 2 * products, .shape = values.sizes().vec()});
  return {values, present};
}

}  // namespace

void register_regions(torch::Library& library) {
  library.impl("anchors", &anchors);
  library.impl("decode_boxes", &decode_boxes);
  library.impl("encode_boxes", &encode_boxes);
  library.impl("nms", &nms);
  library.impl("match", &match);
  library.impl("roi_align", &roi_align);
  library.impl("roi_align_backward", &roi_align_backward);
  library.impl("mask_targets", &mask_targets);
}

}  // namespace lockstep::trace
