// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/samples.h"

#include <ATen/ops/from_blob.h>

namespace lockstep::step {

Samples Samples::slice(int64_t start, int64_t rows) const {
  Samples part = *this;
  part.values = values.narrow(0, start, rows);
  part.targets = targets.narrow(0, start, rows);
  return part;
}

Samples to_samples(const data::Batch& batch, at::Device device) {
  const int64_t size = batch.image_size;
  // from_blob wants pointers to non-const; nobody writes through them.
  const at::Tensor pixels = at::from_blob(const_cast<float*>(batch.images.data()), {batch.size(), size, size, 3});
  const at::Tensor labels = at::from_blob(const_cast<int64_t*>(batch.targets.data()), {batch.size()}, at::kLong);
  return {batch.step, batch.epoch, batch.global_size, pixels.permute({0, 3, 1, 2}).to(device), labels.to(device), 0};
}

}  // namespace lockstep::step
