// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/nms.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernel/box_math.h"

namespace lockstep::kernel {
namespace {

using KeptTensors = std::tuple<at::Tensor, at::Tensor>;

KeptTensors nms_meta(const at::Tensor& boxes, const at::Tensor& /*scores*/, const at::Tensor& /*groups*/,
                     double /*threshold*/, int64_t slots) {
  return {at::empty({boxes.size(0), slots}, boxes.options().dtype(at::kLong)),
          at::empty({boxes.size(0), slots}, boxes.options().dtype(at::kBool))};
}

struct Candidates {  // of one image
  const Box* boxes;
  const float* scores;
  const int64_t* groups;
  int64_t count;
};

// Ends as soon as the slots are full: what comes later has lower scores.
void keep_best(const Candidates& all, float threshold, int64_t slots, int64_t* indices, bool* valid) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < all.count; ++i) {
    if (all.scores[i] >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return all.scores[a] > all.scores[b]; });
  int64_t kept = 0;
  for (const int64_t candidate : order) {
    if (kept == slots) return;
    const bool repeats = std::any_of(indices, indices + kept, [&](int64_t better) {
      return all.groups[better] == all.groups[candidate] &&
             overlap(all.boxes[better], all.boxes[candidate]) > threshold;
    });
    if (repeats) continue;
    indices[kept] = candidate;
    valid[kept] = true;
    ++kept;
  }
}

KeptTensors nms_cpu(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups, double threshold,
                    int64_t slots) {
  const at::Tensor their_boxes = boxes.contiguous(), their_scores = scores.contiguous(),
                   their_groups = groups.contiguous();
  const int64_t images = boxes.size(0), count = boxes.size(1);
  at::Tensor indices = at::zeros({images, slots}, at::kLong), valid = at::zeros({images, slots}, at::kBool);
  const auto* boxes_data = reinterpret_cast<const Box*>(their_boxes.const_data_ptr<float>());
  const auto* scores_data = their_scores.const_data_ptr<float>();
  const auto* groups_data = their_groups.const_data_ptr<int64_t>();
  auto* indices_data = indices.data_ptr<int64_t>();
  auto* valid_data = valid.data_ptr<bool>();
  at::parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      keep_best({boxes_data + i * count, scores_data + i * count, groups_data + i * count, count},
                static_cast<float>(threshold), slots, indices_data + i * slots, valid_data + i * slots);
    }
  });
  return {indices, valid};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def("nms(Tensor boxes, Tensor scores, Tensor groups, float threshold, int slots) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("nms", &nms_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("nms", &nms_meta);
}

Kept nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups, double threshold, int64_t slots) {
  using Signature = KeptTensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, double, int64_t);
  static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::nms", "").typed<Signature>();
  base::ensure(boxes.dim() == 3 && scores.sizes() == boxes.sizes().slice(0, 2) && scores.sizes() == groups.sizes(),
               "every box has a score and a group");
  const c10::AutoGradMode no_gradients(false);
  auto [indices, valid] = operation.call(boxes, scores, groups, threshold, slots);
  return {std::move(indices), std::move(valid)};
}

}  // namespace lockstep::kernel
