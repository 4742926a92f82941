// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/loader/extents.h"
#include "lockstep/loader/store.h"
#include "lockstep/loader/uring_door.h"

namespace lockstep::loader {

// Reads the images of shards before they are decoded: on a thread of its own, with many reads under way at once, within
// a budget of bytes. Images are requested in the order in which they are needed.
class Fetcher {
 public:
  struct Options {
    int64_t byte_budget =
        int64_t{256} << 20;  // of memory of files read or being read and not yet given back; one always
    int depth = 64;          // reads at once
    bool uring = true;       // where it is allowed
    // Not empty: whole extents are read and kept as long as there is room, the longest unused one goes first; images
    // are copied out of them. Must outlive the fetcher.
    const Extents* extents = nullptr;
    int64_t extent_budget = int64_t{256} << 20;  // of bytes of extents; one always
  };

  // `store` must outlive it. REQUIRES: every location of the store has a size.
  Fetcher(const Store& store, const Options& options);
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // The image will be taken as number `ticket`; tickets count from 0, without gaps.
  void want(int64_t ticket, int64_t id);
  // Waits for it. The memory comes back by give_back(). User error, which names the sample: the shard ends within it,
  // or its checksum is wrong; machine error: the file system fails. Each ticket once, from any thread, the earlier ones
  // first by and large.
  std::vector<std::byte> take(int64_t ticket);
  void give_back(std::vector<std::byte>&& memory);
  // The rest is not needed: take() no longer waits, and returns nothing for images that are not there. Any thread.
  void abandon();
  // Reads nothing more, and waits that long for the reads under way. False: there still are some.
  bool end_within(double seconds);

  const char* way() const;     // "io_uring" or "pread"
  int64_t bytes_read() const;  // from the file system, so far
  int64_t num_reads() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::loader
