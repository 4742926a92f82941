// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "lockstep/forecast/address_space.h"
#include "lockstep/forecast/allocator_recording.h"

namespace lockstep::forecast {

// PyTorch's CUDA caching allocator (2.11) without CUDA: the same blocks at the same addresses, so the same bytes. The
// rules are in docs/allocator.md. Not for several threads; a value that can be copied.
class Allocator {
 public:
  using Block = int32_t;  // a handle, valid until it is freed

  explicit Allocator(const AllocatorSettings& settings = {});

  // Nothing: out of memory, after all that can be given back was.
  std::optional<Block> allocate(int64_t bytes, int64_t stream = 0);
  void free(Block block);
  // The two halves of `free` for a block that other streams use.
  void request_free(Block block);
  void complete_free(Block block);
  void empty_cache();

  int64_t address(Block block) const { return blocks_[block].address; }
  int64_t size(Block block) const { return blocks_[block].size; }  // with what rounding added
  const AllocatorPeaks& now() const { return now_; }
  const AllocatorPeaks& peaks() const { return peaks_; }
  void reset_peaks() { peaks_ = now_; }
  int64_t num_segments() const { return num_segments_; }
  int64_t num_retries() const { return num_retries_; }  // times that cached blocks had to go back to the driver first

  // For replays of a recorded stream: where the driver's next segment (or range of an expandable one) lies, instead
  // of where the model of the driver would put it.
  void expect_segment(int64_t address, int64_t size) { expected_.push_back({address, size}); }
  size_t num_unused_expectations() const { return expected_.size(); }
  void forget_expectations() { expected_.clear(); }
  // Gives the segment at `address` back, or unmaps pages. False when it is in use or not there.
  bool release_segment(int64_t address, int64_t size);
  bool unmap(int64_t address, int64_t size);
  // What was there before a recording began. False, nothing: it overlaps what is there already.
  bool preset_segment(int64_t address, int64_t size, int64_t stream, bool small);
  std::optional<Block> preset_block(int64_t address, int64_t bytes);

 private:
  static constexpr Block kNone = -1;

  struct Node {
    int64_t address = 0;
    int64_t size = 0;
    int64_t requested = 0;
    int64_t origin = 0;    // of the expandable range that it lies in
    int64_t freed_at = 0;  // searches before it became free: its age for the garbage collection
    Block previous = kNone;
    Block next = kNone;
    int32_t pool = 0;
    bool active = false;  // handed out, or waiting for other streams
    bool mapped = true;
    bool expandable = false;
  };
  struct Free {
    int64_t size;
    int64_t address;
    Block block;
    bool operator<(const Free& other) const { return size != other.size ? size < other.size : address < other.address; }
  };
  struct Pool {  // one for each stream and size class: blocks never move between them
    int64_t stream = 0;
    bool small = false;
    std::vector<Free> free;             // sorted by size, address
    std::map<int64_t, Block> unmapped;  // by address
  };
  struct Expected {
    int64_t address;
    int64_t size;
  };

  int64_t round(int64_t bytes) const;
  static int64_t segment_size(int64_t rounded);
  int32_t pool_of(int64_t stream, bool small);
  bool collects_garbage() const { return settings_.allowed > 0 && settings_.garbage_collection_threshold > 0; }

  Block make_node(const Node& node);
  void drop_node(Block block);
  void insert_free(Block block);
  void erase_free(Block block);
  void merge(Block block, Block neighbour);  // the neighbour, when it is free, into the block

  Block find_free(int32_t pool, int64_t rounded);
  Block new_segment(int32_t pool, int64_t rounded);
  Block expand(int32_t pool, int64_t rounded);
  Block find_expandable(int32_t pool, int64_t rounded);
  Block make_range(int32_t pool);
  Block cut_unmapped(Block block, int64_t address);  // the part from there on
  Block split_off(Block block, int64_t size);        // the low part, as a block of its own
  bool should_split(const Node& node, int64_t rounded) const;
  bool map(Block block, int64_t size);
  bool driver_gives(int64_t size) const;
  std::optional<int64_t> take_expected(int64_t size);
  void collect_garbage();
  bool release_available(int32_t pool, int64_t rounded);
  void release_all();
  void release_pool(int32_t pool);
  int64_t page_of(const Node& node) const;
  void release_block(Block block);
  void unmap_pages(Block block, int64_t begin, int64_t end);
  Block node_at(int64_t address) const;
  void account(int64_t allocated, int64_t active, int64_t requested);
  void account_reserved(int64_t bytes);

  AllocatorSettings settings_;
  AddressSpace space_;
  std::vector<Node> blocks_;
  std::vector<Block> unused_nodes_;
  std::vector<Pool> pools_;
  std::deque<Expected> expected_;
  AllocatorPeaks now_;
  AllocatorPeaks peaks_;
  int64_t num_searches_[2] = {0, 0};  // large, small
  int64_t num_segments_ = 0;
  int64_t num_retries_ = 0;
};

}  // namespace lockstep::forecast
