// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/serving/served_model.h"

namespace lockstep::serving {

// Where the model comes from.
struct ModelSource {
  std::function<std::string()> identity;  // changes when another model should be served
  std::function<std::shared_ptr<const ServedModel>()> load;
};

// The model that is served now. Another thread looks whether its source has another one, loads that beside the old one
// and puts it in its place: requests under way end with the model that they began with. One that cannot be loaded
// changes nothing; the old one serves on. One whose source changed while it was loaded is loaded again.
class ModelSlot {
 public:
  // Loads the first model; throws what that throws. `say`: told in words what was replaced, or why not.
  ModelSlot(ModelSource source, std::chrono::milliseconds look_every, std::function<void(const std::string&)> say);
  ~ModelSlot();
  ModelSlot(const ModelSlot&) = delete;
  ModelSlot& operator=(const ModelSlot&) = delete;

  std::shared_ptr<const ServedModel> current() const;
  int64_t reloads() const;
  int64_t failures() const;  // to load another one
  void look_now();           // as the thread does

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace lockstep::serving
