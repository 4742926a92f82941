// SPDX-License-Identifier: Apache-2.0
#include "lockstep/insight/sample_image.h"

#include <vector>

#include "lockstep/image/render.h"
#include "lockstep/step/samples.h"

namespace lockstep::insight {

at::Tensor sample_image(const task::Task& task, const spec::Data& data, std::span<const std::byte> file,
                        at::Device device) {
  std::vector<task::FieldValues> values;
  std::vector<std::byte*> places;
  values.reserve(task.fields().size());
  for (const auto& field : task.fields()) {
    values.push_back({field, std::vector<std::byte>(static_cast<size_t>(field.bytes()))});
  }
  places.reserve(values.size());
  for (auto& each : values) places.push_back(each.bytes.data());
  task.encoder()->encode({0, file}, std::nullopt, places);
  const task::FieldValues& image = values[task::index_of(task.fields(), "image")];
  return step::field_on(device, image.field, step::host_values(image, 1), image::normalisation_of(data))
      .to(at::kFloat)
      .clone();
}

}  // namespace lockstep::insight
