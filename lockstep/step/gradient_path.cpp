// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/gradient_path.h"

#include "lockstep/step/reduced_path.h"
#include "lockstep/step/virtual_path.h"

namespace lockstep::step {

std::unique_ptr<GradientPath> make_gradient_path(const model::Network& network,
                                                 const std::vector<model::Named>& parameters, comm::Group& group,
                                                 const StepOptions& options) {
  if (options.training.virtual_ranks > 0) {
    return std::make_unique<VirtualPath>(network, parameters, group, options);
  }
  return std::make_unique<ReducedPath>(network, parameters, group, options);
}

}  // namespace lockstep::step
