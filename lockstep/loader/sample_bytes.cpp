// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/sample_bytes.h"

#include <utility>

namespace lockstep::loader {

SampleBytes::SampleBytes(const Store& store, Fetcher* fetcher, const Errand& errand, std::vector<std::byte>& memory)
    : fetcher_(fetcher) {
  if (fetcher_) fetched_ = fetcher_->take(errand.ticket);
  if (fetcher_ && fetched_.empty()) return;  // abandoned: nobody takes the row
  parts_ = store.split(errand.id, fetcher_ ? std::span<const std::byte>(fetched_) : store.read(errand.id, memory));
}

SampleBytes::~SampleBytes() {
  if (fetcher_) fetcher_->give_back(std::move(fetched_));
}

task::StoredSample SampleBytes::stored(int32_t label) const {
  if (parts_.empty()) return {label, {}, {}};
  return {label, parts_.front(), {parts_.begin() + 1, parts_.end()}};
}

}  // namespace lockstep::loader
