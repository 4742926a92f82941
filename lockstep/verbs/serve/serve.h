// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/serving/model_slot.h"
#include "lockstep/serving/service.h"
#include "lockstep/training/trained.h"
#include "lockstep/web/http/server.h"

namespace lockstep::verbs::serve {

// A trained network as a model that answers requests.
std::shared_ptr<const serving::ServedModel> serve_trained(const training::TrainedOptions& options,
                                                          const std::string& name);

// The model of a run folder, a weights file or a version of a store ("STORE/pets:production"). It is another one when
// the run's weights or checkpoints changed, or the tag moved.
serving::ModelSource model_source(const training::TrainedOptions& options, const std::string& name);

struct ServeOptions {
  serving::ModelSource source = {};
  web::ServerOptions server = {};  // its log is told after ours
  serving::ServiceOptions service = {};
  at::Device device = at::kCPU;                // there as many passes run at once as the network has threads
  std::chrono::milliseconds look_every{2000};  // whether the source has another model
  std::chrono::milliseconds drain{20000};
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<void(const web::Server&, const serving::ServedModel&)> started = [](const auto&, const auto&) {};
  std::function<bool()> stop = [] { return false; };  // asked several times a second
};

// Serves until `stop` says so; then requests under way are answered, and it returns.
void serve(const ServeOptions& options);

}  // namespace lockstep::verbs::serve
