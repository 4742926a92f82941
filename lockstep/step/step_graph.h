// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/run/capture.h"
#include "lockstep/step/pass.h"
#include "lockstep/step/samples.h"
#include "plugins/cuda/graph_plugin.h"

namespace lockstep::step {

// A step as one CUDA graph, with the update where that needs no host (device_update.h): the host launches once, not a
// thousand times. The first steps run as ever, and train; then one is captured (run/capture.h) and every further one of
// its shape is replayed. Another shape (the odd last batch, a detector's other canvas) and rows that could not be read
// run as ever. Where an operator cannot be captured, the run goes on without, and says so once.
class StepGraph {
 public:
  // Whether a step with these options may be captured: on a GPU, with fused kernels, alone, the same operators for
  // every batch.
  static bool is_wanted(const StepOptions& options, const comm::Group& group);
  // Null: it may not, or this build cannot. `parameters`: those that get gradients.
  static std::unique_ptr<StepGraph> make(const StepOptions& options, const comm::Group& group,
                                         std::vector<at::Tensor> parameters);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // What `work` returns for these samples, and the gradients that it leaves in the parameters; whatever else it depends
  // on lies on the device. REQUIRES: no parameter has a gradient.
  using Work = std::function<PassSums(const Samples&)>;
  PassSums run(const Samples& samples, const Work& work);

  bool captured() const { return capture_ != nullptr; }

 private:
  StepGraph(const lockstep_graph& plugin, at::Device device, std::vector<at::Tensor> parameters);
  bool capture(const Samples& samples, const Work& work);
  PassSums replay(const Samples& samples);
  void drop();

  const lockstep_graph& plugin_;
  at::Device device_;
  std::vector<at::Tensor> parameters_;
  run::CaptureCount count_;
  std::string shape_;  // that is captured
  Samples still_;      // in memory of its own, what the graph reads
  bool failed_ = false;
  lockstep_graph_capture* capture_ = nullptr;
  PassSums sums_;                      // what the graph writes
  std::vector<at::Tensor> gradients_;  // likewise
};

}  // namespace lockstep::step
