// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/samples.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "lockstep/kernel/pixels.h"

namespace lockstep::step {

int64_t Samples::num_read() const {
  return was_read.empty() ? rows() : std::count(was_read.begin(), was_read.end(), 1);
}

Samples Samples::slice(int64_t start, int64_t rows) const {
  Samples part = *this;
  for (auto& field : part.fields) field.tensor = field.tensor.narrow(0, start, rows);
  for (auto& feature : part.features) feature = feature.narrow(0, start, rows);
  if (!was_read.empty()) part.was_read.assign(was_read.begin() + start, was_read.begin() + start + rows);
  return part;
}

at::ScalarType scalar_type(task::Element element) {
  switch (element) {
    case task::Element::uint8:
      return at::kByte;
    case task::Element::bf16:
      return at::kBFloat16;
    case task::Element::fp32:
      return at::kFloat;
    case task::Element::int64:
      return at::kLong;
  }
  return at::kFloat;
}

at::Tensor host_values(const task::FieldValues& values, int64_t rows) {
  const task::Field& field = values.field;
  std::vector<int64_t> shape{rows};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  if (field.kind == task::Field::Kind::image) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  // from_blob wants pointers to non-const; nobody writes through them.
  return at::from_blob(const_cast<std::byte*>(values.bytes.data()), shape, scalar_type(field.element));
}

at::Tensor shown_image(const at::Tensor& pixels, const image::Normalisation& normalisation) {
  if (pixels.scalar_type() != at::kByte) return pixels.permute({0, 3, 1, 2});
  const int64_t channels = pixels.size(3);
  if (kernel::takes_normalise(pixels)) {
    std::vector<double> factors, offsets;
    factors.reserve(static_cast<size_t>(channels));
    offsets.reserve(static_cast<size_t>(channels));
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      factors.push_back(1 / (255 * normalisation.std[c]));
      offsets.push_back(-normalisation.mean[c] / normalisation.std[c]);
    }
    return kernel::normalise(pixels, factors, offsets).permute({0, 3, 1, 2});
  }
  at::Tensor factor = at::empty({channels}), offset = at::empty({channels});
  for (int64_t c = 0; c < channels; ++c) {
    const auto channel = static_cast<size_t>(c);
    factor.data_ptr<float>()[c] = 1 / (255 * normalisation.std[channel]);
    offset.data_ptr<float>()[c] = -normalisation.mean[channel] / normalisation.std[channel];
  }
  const at::Device device = pixels.device();
  return pixels.to(at::kFloat).mul_(factor.to(device)).add_(offset.to(device)).permute({0, 3, 1, 2});
}

at::Tensor field_on(at::Device device, const task::Field& field, const at::Tensor& values,
                    const image::Normalisation& normalisation) {
  if (field.kind == task::Field::Kind::plain) return values.to(device);
  // Looked at as channels-last first: so a copy keeps the order of the memory.
  return shown_image(values.permute({0, 3, 1, 2}).to(device).permute({0, 2, 3, 1}), normalisation);
}

Samples to_samples(const loader::Batch& batch, at::Device device) {
  Samples samples{batch.step, batch.epoch, batch.global_size, {}, batch.was_read};
  for (const auto& values : batch.fields) {
    samples.fields.set(values.field.name,
                       field_on(device, values.field, host_values(values, batch.size()), batch.normalisation));
  }
  return samples;
}

}  // namespace lockstep::step
