// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::forecast {
namespace {

using base::text;

// Below this many samples a pass, recomputation may win time too: kernels of so few samples do not fill a GPU.
constexpr int64_t kSmallPass = 8;

struct LastStep {
  size_t begin = 0;
  size_t end = 0;
};

LastStep bounds_of_last_step(const Recording& recording) {
  LastStep step{0, recording.events.size()};
  for (size_t i = 0; i < recording.events.size(); ++i) {
    if (recording.events[i].kind == EventKind::step_begin) step = {i, recording.events.size()};
    if (recording.events[i].kind == EventKind::step_end) step.end = i;
  }
  return step;
}

std::optional<Found> better(std::optional<Found> a, std::optional<Found> b) {
  if (!a || !b) return a ? std::move(a) : std::move(b);
  if (!a->trial.time || !b->trial.time) return a->trial.time ? std::move(a) : std::move(b);
  return b->trial.time->step.value < a->trial.time->step.value ? std::move(b) : std::move(a);
}

// The largest micro-batch that fits: the whole share, half of it, a quarter, ...
std::optional<Found> largest_pass(Levers levers, int64_t rows, const Reach& reach, const TryLevers& try_levers) {
  const int64_t start = levers.micro_batch > 0 ? std::min(levers.micro_batch, rows) : rows;
  for (int64_t micro = start;; micro = (micro + 1) / 2) {
    if (micro != start) levers.micro_batch = micro;
    Trial trial = try_levers(levers);
    if (trial.fits) return Found{levers, std::move(trial)};
    if (micro == 1 || !reach.micro_batch) return std::nullopt;
  }
}

bool is_small(const std::optional<Found>& found, int64_t rows) {
  return !found || found->trial.micro_batch < std::min(kSmallPass, rows);
}

// The fewest blocks with which the whole pass fits; or all of them, and a smaller pass.
std::optional<Found> with_recomputation(Levers levers, int64_t rows, const Reach& reach,
                                        const FindSavings& find_savings, const TryLevers& try_levers) {
  std::optional<Found> best;
  const Trial without = try_levers(levers);
  const double lacking = 1.1 * static_cast<double>(without.memory.total - without.capacity);
  if (lacking > 0) {
    for (auto& set : recompute_sets(find_savings(without.trace_key))) {
      if (set.bytes * static_cast<double>(without.micro_batch) < lacking) continue;
      levers.recompute = std::move(set.blocks);
      Trial trial = try_levers(levers);
      if (!trial.fits) continue;
      best = Found{levers, std::move(trial)};
      break;
    }
  }
  levers.recompute = {"all"};
  return better(std::move(best), largest_pass(levers, rows, reach, try_levers));
}

// The first level with which a pass of some size fits: each further one communicates more, or earlier.
std::optional<Found> with_parts(Levers levers, int64_t rows, const Reach& reach, const FindSavings& find_savings,
                                const TryLevers& try_levers) {
  std::optional<Found> best;
  for (levers.zero = 1; levers.zero <= reach.zero; ++levers.zero) {
    std::optional<Found> found = largest_pass(levers, rows, reach, try_levers);
    if (levers.zero < 3 && reach.recompute && levers.recompute.empty() && is_small(found, rows)) {
      found = better(std::move(found), with_recomputation(levers, rows, reach, find_savings, try_levers));
    }
    const bool enough = !is_small(found, rows);
    best = better(std::move(best), std::move(found));
    if (enough) break;
  }
  return best;
}

std::string called(const Option& option) {
  const std::string name = option.machine_option.gpus > 1
                               ? text(option.machine_option.gpus, " x ", option.machine_option.name)
                               : option.machine_option.name;
  return option.as_written ? name : text(name, " changed");
}

double seconds_of(const Option& option) {
  return option.length ? option.length->total : option.trial.time->step.value;
}

std::string times(double ratio) {
  return ratio < 1.995 ? base::percent(ratio - 1, 0) : text(base::fixed(ratio, ratio < 20 ? 1 : 0), " times");
}

}  // namespace

std::vector<BlockSaving> block_savings(const Recording& recording) {
  const LastStep step = bounds_of_last_step(recording);
  std::vector<BlockSaving> savings;
  for (const auto& name : recording.blocks) savings.push_back({name, 0});
  std::map<int64_t, std::pair<int64_t, int64_t>> kept;  // storage -> bytes, block
  std::vector<std::pair<int64_t, int64_t>> born;        // storages whose operator has not run yet
  bool backward = false;
  for (size_t i = step.begin; i < step.end; ++i) {
    const Event& event = recording.events[i];
    if (event.kind == EventKind::birth && event.memory == MemoryClass::activations) {
      born.emplace_back(event.id, event.bytes);
    } else if (event.kind == EventKind::run) {
      const Operator& call = recording.operators[static_cast<size_t>(event.id)];
      backward = call.phase == Phase::backward;
      const bool forward = call.phase == Phase::forward && call.block >= 0;
      for (const auto& [storage, bytes] : born) {
        if (forward) kept[storage] = {bytes, call.block};
      }
      born.clear();
    } else if (event.kind == EventKind::death) {
      const auto found = kept.find(event.id);
      if (found == kept.end()) continue;
      if (backward)
        savings[static_cast<size_t>(found->second.second)].bytes += static_cast<double>(found->second.first);
      kept.erase(found);
    }
  }
  std::erase_if(savings, [](const BlockSaving& saving) { return saving.bytes <= 0; });
  const auto samples = static_cast<double>(std::max<int64_t>(1, recording.micro_batch * recording.accumulation));
  for (auto& saving : savings) saving.bytes /= samples;
  return savings;
}

std::vector<RecomputeSet> recompute_sets(const std::vector<BlockSaving>& order) {
  const size_t quarter = (order.size() + 3) / 4;
  std::vector<RecomputeSet> sets;
  RecomputeSet set;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    set.blocks.push_back(order[i].block);
    set.bytes += order[i].bytes;
    if (set.blocks.size() % quarter == 0) sets.push_back(set);
  }
  return sets;
}

std::optional<Found> search(const Levers& written, int64_t rows, const Reach& reach, const FindSavings& find_savings,
                            const TryLevers& try_levers) {
  std::optional<Found> best;
  for (const auto& precision : reach.precisions) {
    Levers levers = written;
    levers.precision = precision;
    std::optional<Found> plain;
    if (reach.plain) plain = largest_pass(levers, rows, reach, try_levers);
    if (reach.plain && is_small(plain, rows) && reach.recompute && written.recompute.empty()) {
      plain = better(std::move(plain), with_recomputation(levers, rows, reach, find_savings, try_levers));
    }
    if (is_small(plain, rows) && written.zero == 0) {
      plain = better(std::move(plain), with_parts(levers, rows, reach, find_savings, try_levers));
    }
    const bool fits = plain.has_value();
    best = better(std::move(best), std::move(plain));
    // What the job does to save memory may not be needed here.
    const Levers whole{.precision = precision, .data_memory = written.data_memory};
    const bool saves = !written.recompute.empty() || (written.micro_batch > 0 && written.micro_batch < rows) ||
                       (written.zero > 0 && reach.zero > 0);
    if (saves && fits) best = better(std::move(best), largest_pass(whole, rows, reach, try_levers));
  }
  return best;
}

std::vector<std::string> precisions_for(const catalogue::Gpu* gpu, const std::vector<std::string>& of_the_step) {
  std::vector<std::string> all;
  for (const auto& precision : of_the_step) {
    // Nothing: the source does not say; then it is not offered. On CPUs bf16 helps only where the units exist, which
    // no row says.
    const auto has = [&](const catalogue::Number& rate) { return gpu && rate.value_or(0) > 0; };
    if (precision == "fp32" || (precision == "bf16" && gpu && has(gpu->tflops_bf16)) ||
        (precision == "tf32" && gpu && has(gpu->tflops_tf32)) || (precision == "amp" && gpu && has(gpu->tflops_fp16))) {
      all.push_back(precision);
    }
  }
  return all;
}

std::vector<std::string> list_changes(const Levers& written, const Levers& found) {
  std::vector<std::string> all;
  if (found.precision != written.precision) all.push_back(text("training.precision=", found.precision));
  if (found.micro_batch != written.micro_batch) all.push_back(text("training.micro_batch=", found.micro_batch));
  if (found.recompute != written.recompute) {
    std::vector<std::string> quoted;
    for (const auto& block : found.recompute) quoted.push_back(text('"', block, '"'));
    all.push_back(text("training.recompute=[", base::join(quoted, ","), "]"));
  }
  if (found.zero != written.zero) all.push_back(text("training.zero=", found.zero));
  if (found.data_memory != written.data_memory) {
    all.push_back(text("data.memory=", found.data_memory >> 20, "MiB"));
  }
  return all;
}

Best find_best(const std::vector<Option>& options) {
  Best best;
  const bool any_drivable = std::any_of(options.begin(), options.end(),
                                        [](const Option& option) { return option.feasible() && option.drivable; });
  const auto counts = [&](const Option& option) { return option.feasible() && (option.drivable || !any_drivable); };
  const auto rent = [](const Option& option) {
    const Bill* bill = option.costs.cheapest_rent();
    return bill && bill->unit == "USD" ? bill->amount : 0.0;
  };
  const bool rented = std::any_of(options.begin(), options.end(),
                                  [&](const Option& option) { return counts(option) && rent(option) > 0; });
  const auto pick = [&](auto measure) {
    int64_t found = -1;
    for (size_t i = 0; i < options.size(); ++i) {
      if (!counts(options[i]) || measure(options[i]) <= 0) continue;
      if (found < 0 || measure(options[i]) < measure(options[static_cast<size_t>(found)]))
        found = static_cast<int64_t>(i);
    }
    return found;
  };
  best.fastest = pick(seconds_of);
  best.cheapest = pick([&](const Option& option) {
    return rented ? rent(option) : option.energy ? option.energy->joules : 0.0;
  });
  best.cheapest_by = rented ? "rent" : "energy";
  // Of GPUs of the same size the faster one.
  const double slowest = 1e15;
  best.smallest = pick([&](const Option& option) {
    const auto bytes = static_cast<double>(option.trial.capacity * std::max<int64_t>(1, option.machine_option.gpus));
    return option.machine_option.gpu ? bytes * (1 + seconds_of(option) / slowest) : 0.0;
  });
  return best;
}

void compare(std::vector<Option>& options, const Best& best) {
  if (best.fastest < 0) return;
  const Option& fastest = options[static_cast<size_t>(best.fastest)];
  const Bill* least = best.cheapest_by == "rent" && best.cheapest >= 0
                          ? options[static_cast<size_t>(best.cheapest)].costs.cheapest_rent()
                          : nullptr;
  const std::string cheapest = best.cheapest >= 0 ? called(options[static_cast<size_t>(best.cheapest)]) : "";
  for (size_t i = 0; i < options.size(); ++i) {
    Option& option = options[i];
    if (!option.feasible()) continue;
    const auto index = static_cast<int64_t>(i);
    if (index == best.fastest) option.why.push_back("the fastest of these");
    if (index == best.cheapest) option.why.push_back(text("the cheapest of these by ", best.cheapest_by));
    if (index == best.smallest) option.why.push_back("the smallest of these that holds it");
    if (index == best.fastest || index == best.cheapest) continue;
    const double ratio = seconds_of(option) / seconds_of(fastest);
    if (ratio > 1.005) option.why.push_back(text(times(ratio), " slower than ", called(fastest)));
    const Bill* bill = option.costs.cheapest_rent();
    if (least && bill && bill->unit == "USD" && bill->amount > 1.005 * least->amount) {
      option.why.push_back(text(times(bill->amount / least->amount), " dearer to rent than ", cheapest));
    }
  }
}

}  // namespace lockstep::forecast
