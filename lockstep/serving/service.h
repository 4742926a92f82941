// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/serving/batcher.h"
#include "lockstep/serving/model_slot.h"
#include "lockstep/web/http/server.h"

namespace lockstep::serving {

struct ServiceOptions {
  int64_t top = 5;  // answers in a record, unless a request says otherwise
  BatcherOptions batching = {};
  std::chrono::milliseconds patience{30000};  // with work that waits for its turn
};

// What is served by HTTP (docs/serve.md): POST /predict, the Open Inference Protocol under /v2, GET /metrics, and the
// page for people.
class Service {
 public:
  Service(ModelSlot& slot, const ServiceOptions& options);  // `slot` must outlive it
  ~Service();                                               // what was accepted is finished before
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Of the server's thread.
  void handle(web::Request&& request, const web::Answer& answer);
  void count(const web::Access& access);
  // From now on "ready" is denied, so that nobody sends more.
  void drain();

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace lockstep::serving
