// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader_needs.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/run/order.h"

namespace lockstep::loader {

Extents loader_extents(const Collection& collection, const LoaderOptions& options, const Store* store) {
  // The order is training's; files of their own are no matter.
  if (options.use != Use::train && !collection.shards) return {};
  if (options.use == Use::train && task_of(options)->num_canvases() > 1) return {};
  const bool windows = settle_order(collection, options.data.order) == spec::SampleOrder::windows;
  return windows ? Extents(*store, static_cast<int64_t>(collection.samples.size()), options.data.extent) : Extents();
}

MemoryNeeds loader_needs(const LoaderOptions& options, int64_t num_samples, const Store* store,
                         const Extents& extents) {
  base::ensure(options.threads > 0, "the threads of a loader are known when its memory is counted");
  const run::Range batch{0, options.global_batch};
  const int64_t share =
      std::max<int64_t>(1, run::rank_range(batch, options.rank, options.num_ranks, options.num_slices).size());
  const int64_t row = task::row_bytes(task_of(options)->fields());
  MemoryNeeds needs{.memory = options.data.memory,
                    .share = options.memory_share,
                    .batch = std::min(share, num_samples) * row,
                    .prefetch = options.prefetch,
                    .threads = options.threads};
  if (store) {
    needs.largest_image = store->largest_image();
    needs.largest_file = store->largest_file();
  }
  for (const Extent& extent : extents.all()) needs.largest_extent = std::max(needs.largest_extent, extent.size);
  // A rank's share of each batch lies in its share of the window's extents, and in one more at its edge.
  const int64_t num_extents = std::min(options.data.window, static_cast<int64_t>(extents.all().size()));
  if (num_extents > 0) needs.window = (num_extents / options.num_ranks + 1) * options.data.extent;
  return needs;
}

std::vector<std::vector<task::Field>> fields_by_canvas(const task::Task& task) {
  std::vector<std::vector<task::Field>> all;
  all.reserve(static_cast<size_t>(task.num_canvases()));
  for (int64_t canvas = 0; canvas < task.num_canvases(); ++canvas) all.push_back(task.fields_on(canvas));
  return all;
}

void check_loader_memory(const Collection& collection, const LoaderOptions& options) {
  const auto store = collection.is_synthetic() ? nullptr : open_store(collection, task_of(options)->members());
  share_memory(loader_needs(options, static_cast<int64_t>(collection.samples.size()), store.get(),
                            loader_extents(collection, options, store.get())));
}

int64_t loader_bytes(const MemoryNeeds& needs, const MemoryShares& shares, bool shards, int64_t photograph) {
  const int64_t pixels = (shares.num_batches + 1) * needs.batch;
  if (shards) return pixels + shares.decoding + shares.files + shares.extents;
  return pixels + shares.decoding + needs.threads * photograph;
}

}  // namespace lockstep::loader
