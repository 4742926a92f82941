// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::store {

// For tests: the folder of a finished run of 2 steps with validation, without libtorch: one tensor, two checkpoints,
// the first of them marked as the best.
class FinishedRun {
 public:
  FinishedRun() {
    base::make_folders(path());
    const run::RunPaths paths{path()};
    base::write_file(paths.job(), R"({"name": "small", "data": {"train": "data", "image_size": 16},
      "model": {"name": "linear", "classes": 2}, "training": {"steps": 2}})");
    run::Journal journal(paths.journal());
    base::Json start = base::Json::object();
    start["data_sha256"] = "feedbeef";
    start["train_samples"] = 10;
    journal.append("start", start);
    run::CheckpointStore checkpoints(paths.checkpoints());
    for (const int64_t step : {1, 2}) {
      run::Save save;
      save.step = step;
      save.best = step == 1;
      save.state["classes"] = base::Json::array_of(std::vector<std::string>{"cat", "dog"});
      save.parts.push_back(run::safetensors_part("weights.safetensors", views(values_[step - 1])));
      checkpoints.save(save);
      base::Json evaluate = base::Json::object();
      evaluate["step"] = step;
      evaluate["samples"] = 4;
      evaluate["top1"] = step == 1 ? 0.75 : 0.5;
      journal.append("evaluate", evaluate);
    }
    weights::write_safetensors(paths.weights(), views(values_[1]), {{"classes", R"(["cat","dog"])"}});
    base::Json end = base::Json::object();
    end["step"] = 2;
    end["weights_sha256"] = base::sha256_of_file(paths.weights());
    journal.append("end", end);
  }
  base::Path path() const { return folder_.path() / "run"; }
  const base::Path& root() const { return folder_.path(); }

 private:
  static std::vector<weights::TensorView> views(const std::vector<float>& values) {
    return {{"head.weight", weights::Dtype::F32, {2}, std::as_bytes(std::span(values))}};
  }

  base::TemporaryFolder folder_;
  std::vector<std::vector<float>> values_ = {{1, 2}, {3, 4}};
};

}  // namespace lockstep::store
