// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/mask_targets.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernel/box_math.h"

namespace lockstep::kernel {
namespace {

using TargetTensors = std::tuple<at::Tensor, at::Tensor>;

TargetTensors targets_meta(const at::Tensor& /*masks*/, const at::Tensor& /*objects*/, const at::Tensor& shown,
                           const at::Tensor& matches, const at::Tensor& /*regions*/, int64_t size) {
  return {at::empty({matches.size(0), matches.size(1), size, size}, shown.options()),
          at::empty(matches.sizes(), matches.options().dtype(at::kBool))};
}

// How much of each cell of a mask a bin has, in one direction: [bins, cells]. The mean over two directions' samples is
// the product of the means over each.
std::vector<float> shares_of_bins(float from, float to, float shown, const MaskAxis& mask, int64_t bins) {
  std::vector<float> shares(static_cast<size_t>(bins * mask.cells), 0);
  const BinAxis axis(from, to, 1, bins);
  const auto samples = static_cast<int64_t>(std::ceil(axis.bin));
  const auto add = [&](int64_t bin, int64_t cell, float share) {
    if (cell >= 0 && cell < mask.cells) shares[static_cast<size_t>(bin * mask.cells + cell)] += share;
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    for (int64_t i = 0; i < samples; ++i) {
      const float position = axis.sample(bin, i, samples);
      if (!(position >= -1 && position <= shown)) continue;
      const float cell = mask.cell_at(smaller(larger(position, 0), larger(shown - 1, 0)));
      const float low = std::floor(cell);
      const float share = 1.0F / static_cast<float>(samples);
      add(bin, static_cast<int64_t>(low), (1 - (cell - low)) * share);
      add(bin, static_cast<int64_t>(low) + 1, (cell - low) * share);
    }
  }
  return shares;
}

void target_of(const uint8_t* mask, int64_t most, const Box& object, const Box& region, const float* shown,
               int64_t size, float* out) {
  const MaskAxis down(object.y1, object.y2, most), across(object.x1, object.x2, most);
  const auto rows = shares_of_bins(region.y1, region.y2, shown[0], down, size);       // [size, down.cells]
  const auto columns = shares_of_bins(region.x1, region.x2, shown[1], across, size);  // [size, across.cells]
  std::vector<float> strip(static_cast<size_t>(across.cells));
  for (int64_t i = 0; i < size; ++i) {
    std::fill(strip.begin(), strip.end(), 0.0F);
    for (int64_t row = 0; row < down.cells; ++row) {
      const float share = rows[static_cast<size_t>(i * down.cells + row)];
      if (share == 0) continue;
      for (int64_t k = 0; k < across.cells; ++k) strip[static_cast<size_t>(k)] += mask[row * most + k] ? share : 0;
    }
    for (int64_t k = 0; k < size; ++k) {
      float sum = 0;
      for (int64_t cell = 0; cell < across.cells; ++cell) {
        sum += columns[static_cast<size_t>(k * across.cells + cell)] * strip[static_cast<size_t>(cell)];
      }
      out[i * size + k] = sum;
    }
  }
}

TargetTensors targets_cpu(const at::Tensor& masks, const at::Tensor& objects, const at::Tensor& shown,
                          const at::Tensor& matches, const at::Tensor& regions, int64_t size) {
  const at::Tensor cells = masks.contiguous(), boxes = objects.contiguous(), limits = shown.contiguous(),
                   slots = matches.contiguous(), wanted = regions.contiguous();
  auto [values, present] = targets_meta(masks, objects, shown, matches, regions, size);
  const int64_t most = masks.size(3), num_slots = masks.size(1), per_image = matches.size(1);
  auto* out = values.data_ptr<float>();
  auto* there = present.data_ptr<bool>();
  at::parallel_for(0, matches.numel(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / per_image, slot = slots.const_data_ptr<int64_t>()[i];
      float* target = out + i * size * size;
      std::fill(target, target + size * size, 0.0F);
      there[i] = false;
      if (slot < 0) continue;
      const int64_t object = image * num_slots + slot;
      const uint8_t* mask = cells.const_data_ptr<uint8_t>() + object * most * most;
      there[i] = std::any_of(mask, mask + most * most, [](uint8_t cell) { return cell != 0; });
      target_of(mask, most, reinterpret_cast<const Box*>(boxes.const_data_ptr<float>())[object],
                reinterpret_cast<const Box*>(wanted.const_data_ptr<float>())[i],
                limits.const_data_ptr<float>() + 2 * image, size, target);
    }
  });
  return {values, present};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def(
      "mask_targets(Tensor masks, Tensor objects, Tensor shown, Tensor matches, Tensor regions, int size) -> (Tensor, "
      "Tensor)");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("mask_targets", &targets_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("mask_targets", &targets_meta);
}

MaskTargets mask_targets(const ObjectMasks& of, const at::Tensor& matches, const at::Tensor& regions, int64_t size) {
  using Signature = TargetTensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                  const at::Tensor&, int64_t);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::mask_targets", "").typed<Signature>();
  base::ensure(of.masks.dim() == 4 && of.masks.size(2) == of.masks.size(3) && of.masks.scalar_type() == at::kByte &&
                   of.objects.sizes().slice(0, 2) == of.masks.sizes().slice(0, 2) &&
                   regions.sizes().slice(0, 2) == matches.sizes(),
               "every object has a mask, every region a match");
  const c10::AutoGradMode no_gradients(false);
  auto [values, present] = operation.call(of.masks, of.objects, of.shown, matches, regions, size);
  return {std::move(values), std::move(present)};
}

}  // namespace lockstep::kernel
