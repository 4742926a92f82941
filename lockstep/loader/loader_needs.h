// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/loader/budget.h"
#include "lockstep/loader/extents.h"
#include "lockstep/loader/loader.h"

namespace lockstep::loader {

// The extents that a loader with these options reads: of windows, else none. `store`: null of a synthetic collection.
Extents loader_extents(const Collection& collection, const LoaderOptions& options, const Store* store);

// What it wants to hold of `num_samples`. `store`: null where there is none, or it is not here.
// REQUIRES: options.threads > 0
MemoryNeeds loader_needs(const LoaderOptions& options, int64_t num_samples, const Store* store, const Extents& extents);

// Of each canvas of the task the fields of a batch.
std::vector<std::vector<task::Field>> fields_by_canvas(const task::Task& task);

// What make_loader would say of the memory, without making one: user error when data.memory is too small.
void check_loader_memory(const Collection& collection, const LoaderOptions& options);

// The most that it holds at once with these shares, the batch with the caller included. Of files of their own, the
// largest of which nobody knows, `photograph` bytes with each thread.
int64_t loader_bytes(const MemoryNeeds& needs, const MemoryShares& shares, bool shards, int64_t photograph);

}  // namespace lockstep::loader
