// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/onnx/model.h"
#include "lockstep/spec/job.h"
#include "lockstep/verbs/export/graph.h"

namespace lockstep::verbs::exporting {

struct GraphOptions {
  Graph::Weights weights = Graph::Weights::fp32;
  bool preprocess = false;  // the input is bytes [batch, height, width, 3], normalised in the graph
};

// The network in evaluation mode as a graph of ONNX, for any batch and the job's image size: input "image" ([batch, 3,
// height, width], normalised), outputs as the network names them. It is run on blank images of two batches; what the
// run calls is translated, so that there is nothing a new network has to declare. User error for a network that has no
// such form. The graph owns the memory of its tensors.
std::unique_ptr<Graph> network_graph(const model::Network& network, const spec::Job& job, const GraphOptions& options);

}  // namespace lockstep::verbs::exporting
