// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lockstep/image/decode.h"
#include "lockstep/serving/served_model.h"

namespace lockstep::serving {

// For tests: two classes, images of 4 x 4; "bright" as far as the mean of the pixels is above 0.
inline std::shared_ptr<const ServedModel> small_model(std::string version = "1", Pass pass = {}) {
  ModelOptions options;
  options.name = "small";
  options.version = std::move(version);
  options.network = "none";
  options.job.data.image_size = 4;
  options.job.model.classes = 2;
  options.classes = {"dark", "bright"};
  options.task = task::make_task(options.job, options.classes);
  if (!pass) {
    pass = [](const loader::Batch& batch) {
      const task::FieldValues& image = batch.field("image");
      OutputRows shares{"probabilities", 2, {}};
      for (int64_t i = 0; i < batch.size(); ++i) {
        double sum = 0;
        for (int64_t k = 0; k < image.field.count(); ++k) sum += image.values<float>(i)[k];
        const float bright = sum > 0 ? 0.75F : 0.25F;
        shares.values.push_back(1 - bright);
        shares.values.push_back(bright);
      }
      return std::vector<OutputRows>{shares};
    };
  }
  return std::make_shared<ServedModel>(std::move(options), std::move(pass));
}

// A PNG file of one grey.
inline std::string grey_image(uint8_t level) {
  image::Image image(8, 6);
  for (auto& value : image.pixels) value = level;
  return image::encode_png(image);
}

}  // namespace lockstep::serving
