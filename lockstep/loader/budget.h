// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::loader {

// What a loader wants to hold at once, in bytes.
struct MemoryNeeds {
  int64_t memory = 0;          // data.memory
  double share = 1;            // of it, for this loader
  int64_t batch = 0;           // one rank's share of a batch
  int64_t prefetch = 4;        // batches in flight that are worth having
  int64_t threads = 1;         // each has an image in hand
  int64_t largest_image = 0;   // while it is decoded; 0: nobody knows (files of their own)
  int64_t largest_file = 0;    // likewise
  int64_t largest_extent = 0;  // one is held whatever the share; 0: none
  int64_t window = 0;          // this rank's share of the extents whose samples are mixed; 0: none
};

struct MemoryShares {
  int64_t decoding = 0;     // bytes with the threads
  int64_t files = 0;        // bytes of images' files that are read ahead
  int64_t extents = 0;      // bytes of extents that are kept: too few make reading slower, not wrong
  int64_t num_batches = 0;  // in flight; one more is with the caller, or spare

  bool operator==(const MemoryShares&) const = default;
};

// The least data.memory, in whole MiB, with which share_memory divides something.
int64_t least_memory(const MemoryNeeds& needs);

// Divides the budget. User error that says what is needed when two batches, a file, an extent and the threads' images
// are more than the budget.
MemoryShares share_memory(const MemoryNeeds& needs);
// Of files of their own, which are neither read ahead nor known in size: what is left to read and decode images.
int64_t room_for_images(const MemoryNeeds& needs, const MemoryShares& shares);

}  // namespace lockstep::loader
