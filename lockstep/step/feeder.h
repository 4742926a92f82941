// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/loader/loader.h"
#include "lockstep/step/samples.h"

namespace lockstep::step {

// The batches of a loader as samples on the device, one step ahead: while a step computes, a thread puts the next batch
// into page-locked memory and sends it to the GPU on a stream of its own. On the CPU the same with plain memory (so
// that it can be tested there; training has no use for it).
class Feeder {
 public:
  // `loader` must outlive it and be asked for batches by nobody else.
  Feeder(loader::Loader& loader, at::Device device);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // Throws what the loader threw. The samples stay valid until the second next() after this one; the work with them is
  // queued on the caller's current stream. Past the end of an evaluation global_size is 0.
  Samples next();
  double wait_seconds() const { return wait_seconds_; }  // of the last next()

 private:
  struct State;
  std::unique_ptr<State> state_;
  double wait_seconds_ = 0;
};

}  // namespace lockstep::step
