// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lockstep/model/call_list.h"
#include "lockstep/model/fuse.h"
#include "lockstep/model/network.h"

namespace lockstep::model {

// A network that only answers, on a CPU, in fp32 or bf16: the calls that it makes for a batch of one shape are written
// down once, batch norms, sums and ReLU go into the convolutions before them, and this list is what runs from then on.
// What a list gives is held against the network itself before it is used: it differs by rounding alone, or the network
// runs as it is. Large batches go through in parts whose values stay in the caches. From any thread.
class FrozenNetwork {
 public:
  // Whether that may bring something: images alone go in, and oneDNN is there.
  static bool takes(const Network& network);

  explicit FrozenNetwork(const Network& network);  // must outlive it, with these very weights
  // As Network::run over all blocks, in evaluation. REQUIRES: no gradients.
  Bundle run(const Bundle& values);
  int64_t lists() const;  // shapes for which it has one

 private:
  std::unique_ptr<CallList> make_list(const Bundle& values);
  const CallList* list_for(const Bundle& values);
  Bundle run_at_once(const Bundle& values);

  const Network& network_;
  std::mutex making_;  // of a list: others run theirs meanwhile
  PackedConvolutions packed_;
  mutable std::mutex mutex_;                                         // of the lists, which stay where they are
  std::map<std::vector<int64_t>, std::unique_ptr<CallList>> lists_;  // by shape; null: as it is
};

}  // namespace lockstep::model
