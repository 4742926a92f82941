// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/allocator.h"

#include <algorithm>
#include <bit>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kMinBlock = 512;
constexpr int64_t kSmall = kMiB;              // up to here a block is of the small pool
constexpr int64_t kSmallSegment = 2 * kMiB;   // also the page of a small expandable range
constexpr int64_t kLargeSegment = 20 * kMiB;  // likewise large
constexpr int64_t kMinLarge = 10 * kMiB;      // from here on a block has a segment of its own size
constexpr int64_t kRoundLarge = 2 * kMiB;
constexpr int64_t kMaxUnsplitExcess = 20 * kMiB;
constexpr int64_t kUnlimitedRange = int64_t{1} << 42;
constexpr int64_t kEndless = int64_t{1} << 60;  // no GPU has more, and sums stay whole numbers

int64_t up_to_multiple(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace

Allocator::Allocator(const AllocatorSettings& settings) : settings_(settings) {}

int64_t Allocator::round(int64_t bytes) const {
  if (bytes < kMinBlock) return kMinBlock;
  const int64_t divisions = settings_.roundup_power2_divisions;
  if (divisions <= 1 || bytes <= kMinBlock * divisions) return up_to_multiple(bytes, kMinBlock);
  const auto size = static_cast<uint64_t>(bytes);
  if (std::has_single_bit(size)) return bytes;
  const uint64_t part = std::bit_floor(size) / std::bit_floor(static_cast<uint64_t>(divisions));
  return up_to_multiple(bytes, static_cast<int64_t>(part));
}

int64_t Allocator::segment_size(int64_t rounded) {
  if (rounded <= kSmall) return kSmallSegment;
  return rounded < kMinLarge ? kLargeSegment : up_to_multiple(rounded, kRoundLarge);
}

int32_t Allocator::pool_of(int64_t stream, bool small) {
  for (size_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].stream == stream && pools_[i].small == small) return static_cast<int32_t>(i);
  }
  pools_.push_back({.stream = stream, .small = small, .free = {}, .unmapped = {}});
  return static_cast<int32_t>(pools_.size() - 1);
}

std::optional<Allocator::Block> Allocator::allocate(int64_t bytes, int64_t stream) {
  base::ensure(bytes > 0, "an allocation has a size");
  const int64_t rounded = round(bytes);
  const int32_t pool = pool_of(stream, rounded <= kSmall);
  Block block = find_free(pool, rounded);
  if (block == kNone) {
    if (collects_garbage()) collect_garbage();
    block = new_segment(pool, rounded);
  }
  if (block == kNone && release_available(pool, rounded)) block = new_segment(pool, rounded);
  if (block == kNone) {
    release_all();
    ++num_retries_;
    block = new_segment(pool, rounded);
  }
  if (block == kNone) return std::nullopt;
  if (should_split(blocks_[block], rounded)) block = split_off(block, rounded);
  blocks_[block].active = true;
  blocks_[block].requested = bytes;
  account(size(block), size(block), bytes);
  return block;
}

void Allocator::free(Block block) {
  request_free(block);
  complete_free(block);
}

void Allocator::request_free(Block block) {
  base::ensure(blocks_[block].active, "only a block in use is freed");
  account(-size(block), 0, 0);
}

void Allocator::complete_free(Block block) {
  Node& node = blocks_[block];
  base::ensure(node.active, "only a block in use is freed");
  account(0, -node.size, -node.requested);
  node.active = false;
  merge(block, node.previous);
  merge(block, node.next);
  insert_free(block);
}

void Allocator::account(int64_t allocated, int64_t active, int64_t requested) {
  now_.allocated += allocated;
  now_.active += active;
  now_.requested += requested;
  peaks_.allocated = std::max(peaks_.allocated, now_.allocated);
  peaks_.active = std::max(peaks_.active, now_.active);
  peaks_.requested = std::max(peaks_.requested, now_.requested);
}

void Allocator::account_reserved(int64_t bytes) {
  now_.reserved += bytes;
  peaks_.reserved = std::max(peaks_.reserved, now_.reserved);
}

Allocator::Block Allocator::make_node(const Node& node) {
  if (unused_nodes_.empty()) {
    blocks_.push_back(node);
    return static_cast<Block>(blocks_.size() - 1);
  }
  const Block block = unused_nodes_.back();
  unused_nodes_.pop_back();
  blocks_[block] = node;
  return block;
}

void Allocator::drop_node(Block block) {
  blocks_[block] = {};
  blocks_[block].pool = kNone;
  unused_nodes_.push_back(block);
}

void Allocator::insert_free(Block block) {
  Node& node = blocks_[block];
  Pool& pool = pools_[node.pool];
  node.freed_at = num_searches_[pool.small];
  const Free entry{node.size, node.address, block};
  pool.free.insert(std::lower_bound(pool.free.begin(), pool.free.end(), entry), entry);
}

void Allocator::erase_free(Block block) {
  const Node& node = blocks_[block];
  auto& free = pools_[node.pool].free;
  const auto found = std::lower_bound(free.begin(), free.end(), Free{node.size, node.address, block});
  base::ensure(found != free.end() && found->block == block, "a free block is listed");
  free.erase(found);
}

void Allocator::merge(Block block, Block neighbour) {
  if (neighbour == kNone) return;
  Node& into = blocks_[block];
  const Node& from = blocks_[neighbour];
  if (from.active || from.mapped != into.mapped) return;
  if (from.mapped) {
    erase_free(neighbour);
  } else {
    pools_[from.pool].unmapped.erase(from.address);
  }
  if (into.previous == neighbour) {
    into.address = from.address;
    into.previous = from.previous;
    if (into.previous != kNone) blocks_[into.previous].next = block;
  } else {
    into.next = from.next;
    if (into.next != kNone) blocks_[into.next].previous = block;
  }
  into.size += from.size;
  drop_node(neighbour);
}

// Best fit of the same stream, the lowest address among equals: the list is sorted by size, address.
Allocator::Block Allocator::find_free(int32_t pool, int64_t rounded) {
  auto& free = pools_[pool].free;
  if (collects_garbage()) ++num_searches_[pools_[pool].small];
  auto found = std::lower_bound(free.begin(), free.end(), Free{rounded, 0, kNone});
  if (found == free.end()) return kNone;
  if (settings_.expandable_segments) {
    // A block at the end of the mapped part counts as large as it can grow, so that a smaller one is preferred.
    const auto can_grow_to = [&](const Free& entry) {
      const Block next = blocks_[entry.block].next;
      return entry.size + (next != kNone && !blocks_[next].mapped ? blocks_[next].size : 0);
    };
    auto next = std::next(found);
    while (next != free.end() && can_grow_to(*next) < can_grow_to(*found)) found = next++;
  }
  const int64_t limit = settings_.max_split_size;
  if (limit > 0 && rounded < limit && found->size >= limit) return kNone;
  if (limit > 0 && rounded >= limit && found->size >= rounded + kMaxUnsplitExcess) return kNone;
  const Block block = found->block;
  free.erase(found);
  return block;
}

bool Allocator::should_split(const Node& node, int64_t rounded) const {
  const int64_t rest = node.size - rounded;
  if (pools_[node.pool].small || settings_.expandable_segments) return rest >= kMinBlock;
  return (settings_.max_split_size == 0 || rounded < settings_.max_split_size) && rest > kSmall;
}

Allocator::Block Allocator::split_off(Block block, int64_t size) {
  Node low = blocks_[block];
  low.size = size;
  low.next = block;
  const Block made = make_node(low);
  if (low.previous != kNone) blocks_[low.previous].next = made;
  Node& rest = blocks_[block];
  rest.previous = made;
  rest.address += size;
  rest.size -= size;
  insert_free(block);
  return made;
}

bool Allocator::driver_gives(int64_t size) const {
  return now_.reserved + size <= (settings_.capacity > 0 ? settings_.capacity : kEndless);
}

std::optional<int64_t> Allocator::take_expected(int64_t size) {
  if (expected_.empty() || expected_.front().size != size) return std::nullopt;
  const int64_t address = expected_.front().address;
  expected_.pop_front();
  return address;
}

Allocator::Block Allocator::new_segment(int32_t pool, int64_t rounded) {
  const int64_t size = segment_size(rounded);
  if (settings_.allowed > 0 && now_.reserved + size > settings_.allowed) return kNone;
  if (settings_.expandable_segments) return expand(pool, rounded);
  if (!driver_gives(size)) return kNone;
  Node node;
  const auto expected = take_expected(size);
  node.address = expected ? *expected : space_.take(size);
  node.size = size;
  node.pool = pool;
  account_reserved(size);
  ++num_segments_;
  return make_node(node);
}

int64_t Allocator::page_of(const Node& node) const {
  return pools_[node.pool].small ? kSmallSegment : kLargeSegment;
}

// The lowest free or unmapped interval with room for `rounded`; a new range when there is none.
Allocator::Block Allocator::find_expandable(int32_t pool, int64_t rounded) {
  const auto usable = [&](Block block) { return block != kNone && !blocks_[block].active; };
  for (const auto& [address, unmapped] : pools_[pool].unmapped) {
    const Block first = usable(blocks_[unmapped].previous) ? blocks_[unmapped].previous : unmapped;
    int64_t room = 0;
    for (Block at = first; room < rounded && usable(at); at = blocks_[at].next) room += blocks_[at].size;
    if (room >= rounded) return first;
  }
  return make_range(pool);
}

Allocator::Block Allocator::make_range(int32_t pool) {
  Node node;
  node.pool = pool;
  node.mapped = false;
  node.expandable = true;
  const int64_t wanted = settings_.capacity > 0 ? settings_.capacity + settings_.capacity / 8 : kUnlimitedRange;
  node.size = up_to_multiple(wanted, page_of(node));
  node.address = expected_.empty() ? space_.reserve(node.size) : expected_.front().address;
  node.origin = node.address;
  const Block range = make_node(node);
  pools_[pool].unmapped[node.address] = range;
  ++num_segments_;
  return range;
}

Allocator::Block Allocator::expand(int32_t pool, int64_t rounded) {
  Block block = find_expandable(pool, rounded);
  if (!blocks_[block].mapped && !map(block, std::min(size(block), rounded))) return kNone;
  while (size(block) < rounded) {
    const Block next = blocks_[block].next;
    if (!map(next, std::min(rounded - size(block), size(next)))) return kNone;
    block = next;  // it has swallowed the free block below
  }
  erase_free(block);
  return block;
}

bool Allocator::map(Block block, int64_t wanted) {
  const int64_t bytes = up_to_multiple(wanted, page_of(blocks_[block]));
  if (!driver_gives(bytes)) return false;
  if (!expected_.empty()) expected_.pop_front();
  pools_[blocks_[block].pool].unmapped.erase(address(block));
  if (bytes < size(block)) {
    Node rest = blocks_[block];
    rest.address += bytes;
    rest.size -= bytes;
    rest.previous = block;
    const Block made = make_node(rest);
    if (rest.next != kNone) blocks_[rest.next].previous = made;
    blocks_[block].next = made;
    blocks_[block].size = bytes;
    pools_[rest.pool].unmapped[rest.address] = made;
  }
  blocks_[block].mapped = true;
  merge(block, blocks_[block].previous);
  merge(block, blocks_[block].next);
  insert_free(block);
  account_reserved(bytes);
  return true;
}

}  // namespace lockstep::forecast
