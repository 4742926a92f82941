// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/order_quality.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep::measure {
namespace {

constexpr int64_t kNear = 25;  // on each side

struct Epoch {
  std::vector<int64_t> ids;    // by position
  std::vector<int64_t> batch;  // of each sample, by id
};

Epoch run_epoch(loader::Sequence& sequence, int64_t epoch, int64_t num_samples, int64_t batch) {
  Epoch result{{}, std::vector<int64_t>(static_cast<size_t>(num_samples))};
  for (int64_t begin = 0; begin < num_samples; begin += batch) {
    const auto ids = sequence.batch(epoch, {begin, std::min(begin + batch, num_samples)});
    for (const int64_t id : ids) result.batch[static_cast<size_t>(id)] = begin / batch;
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
  }
  return result;
}

double neighbours_in_batch(const Epoch& epoch) {
  const auto n = static_cast<int64_t>(epoch.batch.size());
  int64_t together = 0;
  for (int64_t id = 0; id < n; ++id) {
    for (int64_t other = std::max<int64_t>(0, id - kNear); other < std::min(n, id + kNear + 1); ++other) {
      together += other != id && epoch.batch[static_cast<size_t>(id)] == epoch.batch[static_cast<size_t>(other)];
    }
  }
  return static_cast<double>(together) / static_cast<double>(n);
}

// Pairs one apart in a batch's list stand for all pairs.
double pairs_met_again(const Epoch& first, const Epoch& second, int64_t batch) {
  int64_t pairs = 0, again = 0;
  for (size_t i = 0; i + 1 < first.ids.size(); ++i) {
    const auto a = static_cast<size_t>(first.ids[i]), b = static_cast<size_t>(first.ids[i + 1]);
    if (first.batch[a] != first.batch[b]) continue;
    ++pairs;
    again += second.batch[a] == second.batch[b];
  }
  const double chance = static_cast<double>(batch - 1) / static_cast<double>(first.ids.size() - 1);
  return pairs == 0 ? 0 : static_cast<double>(again) / static_cast<double>(pairs) / chance;
}

}  // namespace

OrderQuality measure_order(const std::string& name, loader::Sequence& sequence, const std::vector<int32_t>& labels,
                           const OrderBench& bench) {
  base::ensure(bench.epochs >= 2, "two epochs to compare");
  const auto n = static_cast<int64_t>(labels.size());
  std::vector<double> shares(static_cast<size_t>(1 + *std::max_element(labels.begin(), labels.end())));
  for (const int32_t label : labels) shares[static_cast<size_t>(label)] += 1.0 / static_cast<double>(n);
  OrderQuality quality{.order = name};
  int64_t num_batches = 0;
  Epoch before;
  for (int64_t e = 0; e < bench.epochs; ++e) {
    Epoch epoch = run_epoch(sequence, e, n, bench.batch);
    for (int64_t i = 0; i < n; ++i) {
      quality.displacement += static_cast<double>(std::llabs(epoch.ids[static_cast<size_t>(i)] - i));
    }
    quality.neighbours += neighbours_in_batch(epoch) / static_cast<double>(bench.epochs);
    for (int64_t begin = 0; begin + bench.batch <= n; begin += bench.batch, ++num_batches) {
      std::vector<double> counts(shares.size());
      for (int64_t i = begin; i < begin + bench.batch; ++i) {
        ++counts[static_cast<size_t>(labels[static_cast<size_t>(epoch.ids[static_cast<size_t>(i)])])];
      }
      for (size_t c = 0; c < counts.size(); ++c) {
        const double expected = shares[c] * static_cast<double>(bench.batch);
        quality.classes += counts[c] > 0;
        if (expected > 0) quality.class_deviation += (counts[c] - expected) * (counts[c] - expected) / expected;
      }
    }
    if (e > 0) quality.met_again += pairs_met_again(before, epoch, bench.batch) / static_cast<double>(bench.epochs - 1);
    before = std::move(epoch);
  }
  quality.displacement /= static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(bench.epochs);
  quality.classes /= static_cast<double>(std::max<int64_t>(num_batches, 1));
  const double drawn = 1 - static_cast<double>(bench.batch - 1) / static_cast<double>(std::max<int64_t>(n - 1, 1));
  const double freedom = static_cast<double>(shares.size() - 1) * drawn;  // without putting back
  quality.class_deviation /= static_cast<double>(std::max<int64_t>(num_batches, 1)) * std::max(freedom, 1e-9);
  return quality;
}

}  // namespace lockstep::measure
