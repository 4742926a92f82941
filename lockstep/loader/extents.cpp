// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/extents.h"

#include <algorithm>

namespace lockstep::loader {

Extents::Extents(const Store& store, int64_t num_samples, int64_t bytes) {
  for (int64_t id = 0; id < num_samples; ++id) {
    const Location where = store.locate(id);
    const int64_t end = where.offset + where.size;
    if (!extents_.empty()) {
      Extent& last = extents_.back();
      const bool behind = last.file == where.file && where.offset >= last.offset + last.size;
      if (behind && end - last.offset <= bytes) {
        last.samples.end = id + 1;
        last.size = end - last.offset;
        continue;
      }
    }
    extents_.push_back({{id, id + 1}, where.file, where.offset, where.size});
  }
}

int64_t Extents::of(int64_t id) const {
  const auto behind = std::upper_bound(extents_.begin(), extents_.end(), id, [](int64_t sample, const Extent& extent) {
    return sample < extent.samples.begin;
  });
  return behind - extents_.begin() - 1;
}

}  // namespace lockstep::loader
