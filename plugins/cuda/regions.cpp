// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of the operators "lockstep::..." (lockstep/kernel), registered when this library is opened.
// lockstep/trace/regions.cpp tells of the same tensors.
#include "plugins/cuda/regions.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <array>
#include <tuple>

namespace {

using namespace lockstep_cuda_internal;
using at::Tensor;

cudaStream_t stream() {
  return c10::cuda::getCurrentCUDAStream();
}

const float* floats(const Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}

Number number_of(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf,
              "maps are fp32, bf16 or fp16, these are ", type);
  return type == at::kFloat ? Number::fp32 : type == at::kBFloat16 ? Number::bf16 : Number::fp16;
}

Tensor anchors_cuda(const Tensor& like, at::IntArrayRef grids, int64_t height, int64_t width) {
  const c10::cuda::CUDAGuard guard(like.device());
  AnchorLevels levels;
  TORCH_CHECK(grids.size() <= 2 * kMostLevels, "anchors stand on ", kMostLevels, " maps at most");
  for (size_t i = 0; i + 1 < grids.size(); i += 2) {
    const int level = levels.count++;
    levels.rows[level] = grids[i];
    levels.columns[level] = grids[i + 1];
    levels.down[level] = static_cast<float>(height / grids[i]);
    levels.across[level] = static_cast<float>(width / grids[i + 1]);
    levels.first[level + 1] = levels.first[level] + 3 * grids[i] * grids[i + 1];
  }
  Tensor out = at::empty({levels.first[levels.count], 4}, like.options().dtype(at::kFloat));
  anchors(levels, out.data_ptr<float>(), stream());
  return out;
}

Tensor decode_cuda(const Tensor& boxes, const Tensor& deltas, const Tensor& shown, double position, double size) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const Tensor from = boxes.contiguous(), moves = deltas.contiguous(), limits = shown.contiguous();
  Tensor out = at::empty(deltas.sizes(), deltas.options());
  decode_boxes(floats(from), floats(moves), floats(limits), {static_cast<float>(position), static_cast<float>(size)},
               deltas.size(0), deltas.size(1), deltas.size(2), out.data_ptr<float>(), stream());
  return out;
}

Tensor encode_cuda(const Tensor& boxes, const Tensor& wanted, double position, double size) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const Tensor from = boxes.contiguous(), to = wanted.contiguous();
  Tensor out = at::empty(boxes.sizes(), boxes.options());
  encode_boxes(floats(from), floats(to), {static_cast<float>(position), static_cast<float>(size)}, boxes.numel() / 4,
               out.data_ptr<float>(), stream());
  return out;
}

std::tuple<Tensor, Tensor> nms_cuda(const Tensor& boxes, const Tensor& scores, const Tensor& groups, double threshold,
                                    int64_t slots) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const Tensor all = boxes.contiguous(), kinds = groups.contiguous();
  const auto [sorted, order] = at::sort(scores, /*stable=*/true, 1, /*descending=*/true);
  const int64_t images = boxes.size(0), count = boxes.size(1);
  const Tensor repeats = at::empty({images, count, (count + 63) / 64}, boxes.options().dtype(at::kLong));
  Tensor indices = at::empty({images, slots}, boxes.options().dtype(at::kLong));
  Tensor valid = at::empty({images, slots}, boxes.options().dtype(at::kBool));
  nms({.boxes = floats(all),
       .scores = floats(sorted),
       .order = order.const_data_ptr<int64_t>(),
       .groups = kinds.const_data_ptr<int64_t>(),
       .images = images,
       .count = count,
       .slots = slots,
       .threshold = static_cast<float>(threshold),
       .repeats = reinterpret_cast<uint64_t*>(repeats.data_ptr<int64_t>()),
       .indices = indices.data_ptr<int64_t>(),
       .valid = valid.data_ptr<bool>()},
      stream());
  return {indices, valid};
}

Tensor match_cuda(const Tensor& boxes, const Tensor& objects, const Tensor& labels, double low, double high,
                  bool best_of_object) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const Tensor from = boxes.contiguous(), to = objects.contiguous(), there = labels.contiguous();
  const int64_t images = objects.size(0), slots = objects.size(1);
  const Tensor most = best_of_object ? at::zeros({images, slots}, objects.options()) : Tensor();
  Tensor matches = at::empty({images, boxes.size(1)}, boxes.options().dtype(at::kLong));
  match({.boxes = floats(from),
         .box_images = boxes.size(0),
         .objects = floats(to),
         .labels = there.const_data_ptr<int64_t>(),
         .images = images,
         .count = boxes.size(1),
         .slots = slots,
         .low = static_cast<float>(low),
         .high = static_cast<float>(high),
         .most = most.defined() ? most.data_ptr<float>() : nullptr,
         .matches = matches.data_ptr<int64_t>()},
        stream());
  return matches;
}

Tensor roi_align_cuda(const Tensor& map4, const Tensor& map8, const Tensor& map16, const Tensor& map32,
                      const Tensor& boxes, int64_t size, int64_t sampling) {
  const c10::cuda::CUDAGuard guard(map4.device());
  const auto lying = [](const Tensor& map) { return map.contiguous(at::MemoryFormat::ChannelsLast); };
  const std::array<Tensor, 4> maps{lying(map4), lying(map8), lying(map16), lying(map32)};
  const Tensor regions = boxes.contiguous();
  Tensor out = at::empty({boxes.size(0) * boxes.size(1), map4.size(1), size, size}, map4.options(),
                         at::MemoryFormat::ChannelsLast);
  RoiCall call{{}, {}, floats(regions), boxes.size(0), boxes.size(1), map4.size(1), size, sampling};
  const void* data[4] = {};
  for (size_t i = 0; i < maps.size(); ++i) {
    call.height[i] = maps[i].size(2);
    call.width[i] = maps[i].size(3);
    data[i] = maps[i].const_data_ptr();
  }
  roi_align(call, number_of(map4), data, out.mutable_data_ptr(), stream());
  return out;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> roi_align_backward_cuda(const Tensor& gradient, const Tensor& boxes,
                                                                   at::IntArrayRef sizes, int64_t sampling) {
  const c10::cuda::CUDAGuard guard(gradient.device());
  const Tensor from = gradient.contiguous(at::MemoryFormat::ChannelsLast), regions = boxes.contiguous();
  RoiCall call{{}, {}, floats(regions), boxes.size(0), boxes.size(1), gradient.size(1), gradient.size(2), sampling};
  std::array<Tensor, 4> maps;
  float* data[4] = {};
  for (size_t i = 0; i < maps.size(); ++i) {
    call.height[i] = sizes[2 * i];
    call.width[i] = sizes[2 * i + 1];
    maps[i] = at::empty({boxes.size(0), gradient.size(1), sizes[2 * i], sizes[2 * i + 1]},
                        gradient.options().dtype(at::kFloat), at::MemoryFormat::ChannelsLast)
                  .zero_();
    data[i] = maps[i].data_ptr<float>();
  }
  roi_align_backward(call, number_of(gradient), from.const_data_ptr(), data, stream());
  for (Tensor& map : maps) map = map.to(gradient.scalar_type());
  return {maps[0], maps[1], maps[2], maps[3]};
}

std::tuple<Tensor, Tensor> mask_targets_cuda(const Tensor& masks, const Tensor& objects, const Tensor& shown,
                                             const Tensor& matches, const Tensor& regions, int64_t size) {
  const c10::cuda::CUDAGuard guard(masks.device());
  const Tensor cells = masks.contiguous(), boxes = objects.contiguous(), limits = shown.contiguous(),
               slots = matches.contiguous(), wanted = regions.contiguous();
  Tensor values = at::empty({matches.size(0), matches.size(1), size, size}, shown.options());
  Tensor present = at::empty(matches.sizes(), matches.options().dtype(at::kBool));
  mask_targets({.masks = cells.const_data_ptr<uint8_t>(),
                .objects = floats(boxes),
                .shown = floats(limits),
                .matches = slots.const_data_ptr<int64_t>(),
                .regions = floats(wanted),
                .images = matches.size(0),
                .slots = masks.size(1),
                .cells = masks.size(3),
                .per_image = matches.size(1),
                .size = size,
                .values = values.data_ptr<float>(),
                .present = present.data_ptr<bool>()},
               stream());
  return {values, present};
}

}  // namespace

TORCH_LIBRARY_IMPL(lockstep, CUDA, library) {
  library.impl("anchors", &anchors_cuda);
  library.impl("decode_boxes", &decode_cuda);
  library.impl("encode_boxes", &encode_cuda);
  library.impl("nms", &nms_cuda);
  library.impl("match", &match_cuda);
  library.impl("roi_align", &roi_align_cuda);
  library.impl("roi_align_backward", &roi_align_backward_cuda);
  library.impl("mask_targets", &mask_targets_cuda);
}
