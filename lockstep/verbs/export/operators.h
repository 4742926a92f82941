// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/verbs/export/graph.h"
#include "lockstep/verbs/export/recording.h"

namespace lockstep::verbs::exporting {

// Adds to the graph what the call does, in operators of ONNX. A call that does not depend on the network's input adds
// nothing: its outputs are constants. Throws a bug naming an operator that has no translation.
void translate(const PairedCall& call, Graph& graph);

}  // namespace lockstep::verbs::exporting
