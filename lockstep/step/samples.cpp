// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/samples.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <vector>

namespace lockstep::step {

Samples Samples::slice(int64_t start, int64_t rows) const {
  Samples part = *this;
  part.values = values.narrow(0, start, rows);
  part.targets = targets.narrow(0, start, rows);
  return part;
}

at::Tensor host_pixels(const loader::Batch& batch) {
  const std::vector<int64_t> shape{batch.size(), batch.image_size, batch.image_size, 3};
  // from_blob wants pointers to non-const; nobody writes through them.
  if (!batch.bytes.empty()) return at::from_blob(const_cast<uint8_t*>(batch.bytes.data()), shape, at::kByte);
  if (!batch.halves.empty()) return at::from_blob(const_cast<uint16_t*>(batch.halves.data()), shape, at::kBFloat16);
  return at::from_blob(const_cast<float*>(batch.images.data()), shape);
}

at::Tensor shown_pixels(const at::Tensor& pixels, const image::Normalisation& normalisation) {
  if (pixels.scalar_type() != at::kByte) return pixels.permute({0, 3, 1, 2});
  at::Tensor factor = at::empty({3}), offset = at::empty({3});
  for (int64_t c = 0; c < 3; ++c) {
    const auto channel = static_cast<size_t>(c);
    factor.data_ptr<float>()[c] = 1 / (255 * normalisation.std[channel]);
    offset.data_ptr<float>()[c] = -normalisation.mean[channel] / normalisation.std[channel];
  }
  const at::Device device = pixels.device();
  return pixels.to(at::kFloat).mul_(factor.to(device)).add_(offset.to(device)).permute({0, 3, 1, 2});
}

at::Tensor pixels_on(at::Device device, const at::Tensor& pixels, const image::Normalisation& normalisation) {
  // Looked at as channels-last first: so a copy keeps the order of the memory.
  return shown_pixels(pixels.permute({0, 3, 1, 2}).to(device).permute({0, 2, 3, 1}), normalisation);
}

at::ScalarType pixel_type(spec::Pixels pixels) {
  return pixels == spec::Pixels::fp32 ? at::kFloat : pixels == spec::Pixels::bf16 ? at::kBFloat16 : at::kByte;
}

Samples to_samples(const loader::Batch& batch, at::Device device) {
  const at::Tensor labels = at::from_blob(const_cast<int64_t*>(batch.targets.data()), {batch.size()}, at::kLong);
  return {batch.step,        batch.epoch,
          batch.global_size, pixels_on(device, host_pixels(batch), batch.normalisation),
          labels.to(device), 0};
}

}  // namespace lockstep::step
