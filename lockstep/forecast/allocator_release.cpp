// SPDX-License-Identifier: Apache-2.0
// The half of the allocator that gives memory back to the driver, and that starts from a given state.
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/forecast/allocator.h"

namespace lockstep::forecast {

void Allocator::empty_cache() {
  release_all();
}

void Allocator::release_all() {
  for (const bool small : {false, true}) {
    for (size_t pool = 0; pool < pools_.size(); ++pool) {
      if (pools_[pool].small == small) release_pool(static_cast<int32_t>(pool));
    }
  }
}

// Segments without a block in use; of expandable ones the whole pages inside free blocks.
void Allocator::release_pool(int32_t pool) {
  const std::vector<Free> free = pools_[pool].free;
  for (const Free& entry : free) {
    const Node& node = blocks_[entry.block];
    if (node.expandable) {
      unmap_pages(entry.block, node.address, node.address + node.size);
    } else if (node.previous == kNone && node.next == kNone) {
      release_block(entry.block);
    }
  }
}

void Allocator::release_block(Block block) {
  erase_free(block);
  space_.give(address(block), size(block));
  account_reserved(-size(block));
  --num_segments_;
  drop_node(block);
}

// Unmaps the whole pages of a free block that lie in [begin, end).
void Allocator::unmap_pages(Block block, int64_t begin, int64_t end) {
  const Node whole = blocks_[block];
  const int64_t page = page_of(whole);
  begin = whole.origin + (begin - whole.origin + page - 1) / page * page;
  end = whole.origin + (end - whole.origin) / page * page;
  if (begin >= end) return;
  erase_free(block);
  Node& node = blocks_[block];
  node.address = begin;
  node.size = end - begin;
  const auto keep = [&](int64_t from, int64_t to, Block previous, Block next) {
    Node part = whole;
    part.address = from;
    part.size = to - from;
    part.previous = previous;
    part.next = next;
    const Block made = make_node(part);
    if (previous != kNone) blocks_[previous].next = made;
    if (next != kNone) blocks_[next].previous = made;
    insert_free(made);
  };
  if (whole.address < begin) keep(whole.address, begin, whole.previous, block);
  if (end < whole.address + whole.size) keep(end, whole.address + whole.size, block, whole.next);
  blocks_[block].mapped = false;
  merge(block, blocks_[block].previous);
  merge(block, blocks_[block].next);
  account_reserved(begin - end);
  if (blocks_[block].previous == kNone && blocks_[block].next == kNone) {
    --num_segments_;
    drop_node(block);
  } else {
    pools_[whole.pool].unmapped[address(block)] = block;
  }
}

// With a finite max_split_size: one oversize block that is large enough, or the largest ones until enough is free.
bool Allocator::release_available(int32_t pool, int64_t rounded) {
  if (settings_.max_split_size == 0) return false;
  auto& free = pools_[pool].free;
  const int64_t wanted = std::max(rounded, settings_.max_split_size);
  const auto found = std::lower_bound(free.begin(), free.end(), Free{wanted, 0, kNone});
  if (found != free.end() && !blocks_[found->block].expandable) {
    release_block(found->block);
    return true;
  }
  int64_t released = 0;
  for (auto at = found - free.begin() - 1; at >= 0 && released < wanted; --at) {
    if (free[at].size < settings_.max_split_size) break;
    if (blocks_[free[at].block].expandable) continue;
    released += free[at].size;
    release_block(free[at].block);
  }
  return released >= wanted;
}

// Frees the large unsplit blocks of above average age until the threshold is kept again.
void Allocator::collect_garbage() {
  const auto threshold =
      static_cast<int64_t>(settings_.garbage_collection_threshold * static_cast<double>(settings_.allowed));
  const int64_t target = now_.reserved - threshold;
  int64_t reclaimed = 0;
  for (bool freed = true; freed && reclaimed < target;) {
    std::vector<Block> whole;
    double total_age = 0;
    const auto age = [&](Block block) { return static_cast<double>(num_searches_[0] - blocks_[block].freed_at); };
    for (const Pool& pool : pools_) {
      for (const Free& entry : pool.free) {
        const Node& node = blocks_[entry.block];
        if (pool.small || node.expandable || node.previous != kNone || node.next != kNone) continue;
        whole.push_back(entry.block);
        total_age += age(entry.block);
      }
    }
    freed = false;
    const double average = total_age / static_cast<double>(std::max<size_t>(whole.size(), 1));
    for (const Block block : whole) {
      if (age(block) < average) continue;
      reclaimed += size(block);
      release_block(block);
      freed = true;
    }
  }
}

Allocator::Block Allocator::node_at(int64_t address) const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Node& node = blocks_[i];
    if (node.pool != kNone && node.address <= address && address < node.address + node.size) {
      return static_cast<Block>(i);
    }
  }
  return kNone;
}

bool Allocator::release_segment(int64_t address, int64_t size) {
  const Block block = node_at(address);
  if (block == kNone) return false;
  const Node& node = blocks_[block];
  if (node.active || node.expandable || node.address != address || node.size != size) return false;
  release_block(block);
  return true;
}

bool Allocator::unmap(int64_t address, int64_t size) {
  const Block block = node_at(address);
  if (block == kNone) return false;
  const Node& node = blocks_[block];
  if (node.active || !node.mapped || !node.expandable || address + size > node.address + node.size) return false;
  const int64_t before = now_.reserved;
  unmap_pages(block, address, address + size);
  return before - now_.reserved == size;
}

Allocator::Block Allocator::cut_unmapped(Block block, int64_t address) {
  if (blocks_[block].address == address) return block;
  Node upper = blocks_[block];
  upper.size -= address - upper.address;
  upper.address = address;
  upper.previous = block;
  const Block made = make_node(upper);
  if (upper.next != kNone) blocks_[upper.next].previous = made;
  blocks_[block].next = made;
  blocks_[block].size -= upper.size;
  pools_[upper.pool].unmapped[address] = made;
  return made;
}

bool Allocator::preset_segment(int64_t address, int64_t size, int64_t stream, bool small) {
  const int32_t pool = pool_of(stream, small);
  Block block = node_at(address);
  if (settings_.expandable_segments) {
    if (block == kNone) {  // the first pages of a range that are known
      block = make_range(pool);
      pools_[pool].unmapped.erase(blocks_[block].address);
      blocks_[block].address = blocks_[block].origin = address;
      pools_[pool].unmapped[address] = block;
    }
    const Node& node = blocks_[block];
    if (node.mapped || node.pool != pool || address + size > node.address + node.size) return false;
    block = cut_unmapped(block, address);
    if (size < this->size(block)) cut_unmapped(block, address + size);
    pools_[pool].unmapped.erase(address);
    blocks_[block].mapped = true;
    insert_free(block);
  } else {
    for (const Node& node : blocks_) {
      if (node.pool != kNone && address < node.address + node.size && node.address < address + size) return false;
    }
    Node node;
    node.address = address;
    node.size = size;
    node.pool = pool;
    insert_free(make_node(node));
    ++num_segments_;
  }
  account_reserved(size);
  return true;
}

std::optional<Allocator::Block> Allocator::preset_block(int64_t address, int64_t bytes) {
  Block block = node_at(address);
  const int64_t rounded = round(bytes);
  if (block == kNone) return std::nullopt;
  {
    const Node& node = blocks_[block];
    if (node.active || !node.mapped || address + rounded > node.address + node.size) return std::nullopt;
  }
  erase_free(block);
  if (blocks_[block].address < address) {
    insert_free(split_off(block, address - blocks_[block].address));
    erase_free(block);  // split_off listed what lies behind
  }
  if (should_split(blocks_[block], rounded)) block = split_off(block, rounded);
  blocks_[block].active = true;
  blocks_[block].requested = bytes;
  account(size(block), size(block), bytes);
  return block;
}

}  // namespace lockstep::forecast
