// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_tree.h"

namespace lockstep::step {

std::vector<Node> maximal_nodes(run::Range slices) {
  std::vector<Node> nodes;
  while (slices.begin < slices.end) {
    int64_t size = 1;
    while (slices.begin % (2 * size) == 0 && slices.begin + 2 * size <= slices.end) size *= 2;
    nodes.push_back({slices.begin, size});
    slices.begin += size;
  }
  return nodes;
}

}  // namespace lockstep::step
