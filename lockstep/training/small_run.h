// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/image/decode.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/run/folder.h"
#include "lockstep/spec/job.h"

namespace lockstep::training {

// For tests: a run folder as train leaves it, of a linear network with random weights, and 2 classes of plain-coloured
// JPEGs for it.
class SmallRun {
 public:
  explicit SmallRun(int64_t images_per_class = 5) {
    job_.name = "small";
    job_.data.train = job_.data.validate = (root() / "data").string();
    job_.data.image_size = 16;
    job_.model.name = "linear";
    job_.model.classes = static_cast<int64_t>(classes_.size());
    job_.training.steps = 1;
    for (size_t c = 0; c < classes_.size(); ++c) {
      base::make_folders(root() / "data" / classes_[c]);
      for (int64_t i = 0; i < images_per_class; ++i) {
        image::Image image(24, 20);
        for (size_t p = 0; p < image.pixels.size(); ++p) {
          image.pixels[p] = static_cast<uint8_t>(p % 3 == c ? 200 + 10 * i : 40 * i);
        }
        base::write_file(root() / "data" / classes_[c] / (std::to_string(i) + ".jpg"), image::encode_jpeg(image, 95));
      }
    }
    const run::RunPaths paths{run()};
    base::make_folders(run());
    base::write_json(paths.job(), spec::to_json(job_));
    const auto network = model::make_network(job_.model, job_.data.image_size, 3);
    model::save_weights(network, paths.weights(), {{"classes", base::Json::array_of(classes_).dump(-1)}});
  }

  const base::Path& root() const { return folder_.path(); }
  base::Path run() const { return root() / "run"; }
  const spec::Job& job() const { return job_; }
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  base::TemporaryFolder folder_;
  std::vector<std::string> classes_ = {"green thing", "red"};
  spec::Job job_;
};

}  // namespace lockstep::training
