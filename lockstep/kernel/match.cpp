// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/match.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernel/box_math.h"

namespace lockstep::kernel {
namespace {

constexpr int64_t kMatchGrain = 2048;  // boxes that are worth a thread

at::Tensor match_meta(const at::Tensor& boxes, const at::Tensor& objects, const at::Tensor& /*labels*/, double /*low*/,
                      double /*high*/, bool /*best_of_object*/) {
  return at::empty({objects.size(0), boxes.size(1)}, boxes.options().dtype(at::kLong));
}

struct Object {
  Box box;
  int64_t slot;
  float most = 0;  // what a box overlaps it at most
};

std::vector<Object> objects_of_image(const Box* boxes, const int64_t* labels, int64_t slots) {
  std::vector<Object> objects;
  for (int64_t slot = 0; slot < slots; ++slot) {
    if (labels[slot] > 0) objects.push_back({boxes[slot], slot});
  }
  return objects;
}

void find_most(std::vector<Object>& objects, const Box* boxes, int64_t count) {
  std::mutex mutex;
  at::parallel_for(0, count, kMatchGrain, [&](int64_t begin, int64_t end) {
    std::vector<float> most(objects.size(), 0);
    for (int64_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < objects.size(); ++k) most[k] = std::max(most[k], overlap(objects[k].box, boxes[i]));
    }
    const std::scoped_lock lock(mutex);  // a maximum does not depend on the order
    for (size_t k = 0; k < objects.size(); ++k) objects[k].most = std::max(objects[k].most, most[k]);
  });
}

at::Tensor match_cpu(const at::Tensor& boxes, const at::Tensor& objects, const at::Tensor& labels, double low,
                     double high, bool best_of_object) {
  const at::Tensor their_boxes = boxes.contiguous(), their_objects = objects.contiguous(),
                   their_labels = labels.contiguous();
  at::Tensor matches = match_meta(boxes, objects, labels, low, high, best_of_object);
  const int64_t count = boxes.size(1), slots = objects.size(1);
  for (int64_t image = 0; image < objects.size(0); ++image) {
    const auto* from =
        reinterpret_cast<const Box*>(their_boxes.const_data_ptr<float>()) + (boxes.size(0) == 1 ? 0 : image * count);
    auto there = objects_of_image(reinterpret_cast<const Box*>(their_objects.const_data_ptr<float>()) + image * slots,
                                  their_labels.const_data_ptr<int64_t>() + image * slots, slots);
    if (best_of_object) find_most(there, from, count);
    auto* out = matches.data_ptr<int64_t>() + image * count;
    at::parallel_for(0, count, kMatchGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float most = 0;
        int64_t best = there.empty() ? kBelow : there.front().slot;
        bool is_best = false;
        for (const Object& object : there) {
          const float shared = overlap(object.box, from[i]);
          if (shared > most) {
            most = shared;
            best = object.slot;
          }
          is_best = is_best || (best_of_object && shared > 0 && shared == object.most);
        }
        if (!is_best && most < static_cast<float>(high)) best = most < static_cast<float>(low) ? kBelow : kBetween;
        out[i] = best;
      }
    });
  }
  return matches;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def(
      "match(Tensor boxes, Tensor objects, Tensor labels, float low, float high, bool best_of_object) -> Tensor");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("match", &match_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("match", &match_meta);
}

at::Tensor match(const at::Tensor& boxes, const at::Tensor& objects, const at::Tensor& labels,
                 const MatchOptions& options) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, double, double, bool);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::match", "").typed<Signature>();
  base::ensure(boxes.dim() == 3 && objects.dim() == 3 && labels.sizes() == objects.sizes().slice(0, 2) &&
                   (boxes.size(0) == 1 || boxes.size(0) == objects.size(0)),
               "every image has boxes, and its objects labels");
  const c10::AutoGradMode no_gradients(false);
  return operation.call(boxes, objects, labels, options.low, options.high, options.best_of_object);
}

}  // namespace lockstep::kernel
