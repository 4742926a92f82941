// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/loader_read.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/loader.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/processor.h"

namespace lockstep::measure {
namespace {

using base::text;

// "VmRSS" or "VmHWM" (the highest so far).
int64_t memory_line(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  throw base::Error(base::Blame::machine, text("/proc/self/status has no ", std::string(key)));
}

void forget_the_highest() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Waits until the loader has all it may have ahead; gives the time at which it had. Memory is compared from epoch to
// epoch in this state, which is the fullest; what happens to be under way at an epoch's end differs by megabytes.
double let_it_fill() {
  constexpr int kMostLooks = 500, kQuietLooks = 50;
  double full = base::steady_seconds();
  for (int look = 0, quiet = 0; look < kMostLooks && quiet < kQuietLooks; ++look) {
    const double before = base::process_processor_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    quiet = base::process_processor_seconds() - before < 1e-3 ? quiet + 1 : 0;
    if (quiet == 0) full = base::steady_seconds();
  }
  return full;
}

// `counted`: what the epochs before have read; what was read ahead belongs to the epoch that delivered meanwhile.
// `in_use`: the batch that a training would work on, also while the loader fills up.
ReadEpoch read_epoch(loader::Loader& loader, int64_t num_samples, int64_t resident_before, loader::ReadCounts& counted,
                     loader::Batch& in_use) {
  ReadEpoch epoch;
  std::vector<uint8_t> seen(static_cast<size_t>(num_samples));
  const double start = base::steady_seconds(), cpu = base::process_processor_seconds();
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    loader.recycle(std::move(in_use));
    in_use = loader.next();
    for (const int64_t id : in_use.sample_ids) {
      auto& count = seen[static_cast<size_t>(id)];
      count = static_cast<uint8_t>(std::min(count + 1, 2));
    }
  }
  epoch.seconds = let_it_fill() - start;  // as much is read and decoded meanwhile as was delivered
  epoch.cpu_seconds = base::process_processor_seconds() - cpu;
  const loader::ReadCounts after = loader.reads();
  epoch.read_bytes = after.bytes - counted.bytes;
  epoch.reads = after.reads - counted.reads;
  counted = after;
  epoch.missed = std::count_if(seen.begin(), seen.end(), [](uint8_t times) { return times != 1; });
  epoch.resident_bytes = memory_line("VmRSS:") - resident_before;
  epoch.peak_bytes = memory_line("VmHWM:") - resident_before;
  return epoch;
}

}  // namespace

int64_t ReadFigures::peak_bytes() const {
  int64_t most = 0;
  for (const auto& epoch : epochs) most = std::max(most, epoch.peak_bytes);
  return most;
}

double ReadFigures::samples_per_second() const {
  double seconds = 0;
  for (const auto& epoch : epochs) seconds += epoch.seconds;
  return static_cast<double>(samples) * static_cast<double>(epochs.size()) / seconds;
}

ReadFigures bench_reading(const ReadBench& bench) {
  ReadFigures figures;
  const double start = base::steady_seconds();
  const loader::Collection collection = loader::scan_folder(bench.folder);
  if (!collection.shards) {
    throw base::Error(base::Blame::user, text(bench.folder, " is no folder of shards"), "lockstep prep makes them");
  }
  figures.samples = collection.shards->size();
  figures.shards = collection.shards->num_shards();
  for (int64_t i = 0; i < figures.shards; ++i) figures.shard_bytes += collection.shards->index(i).tar_bytes();
  loader::LoaderOptions options;
  options.data = bench.data;
  options.global_batch = bench.batch;
  options.threads = bench.threads;
  forget_the_highest();
  figures.resident_bytes = memory_line("VmRSS:");
  const auto loader = loader::make_loader(collection, options, {options.seed, 0, 0});
  figures.open_seconds = base::steady_seconds() - start;
  let_it_fill();
  loader::ReadCounts counted;
  loader::Batch in_use;
  for (int64_t i = 0; i < bench.epochs; ++i) {
    const ReadEpoch& epoch =
        figures.epochs.emplace_back(read_epoch(*loader, figures.samples, figures.resident_bytes, counted, in_use));
    bench.say(text("epoch ", i, ": ", base::fixed(static_cast<double>(figures.samples) / epoch.seconds, 0),
                   " samples/s, resident ", base::format_bytes(static_cast<double>(epoch.resident_bytes)), ", at most ",
                   base::format_bytes(static_cast<double>(epoch.peak_bytes)), " of ",
                   base::exact_bytes(bench.data.memory)));
  }
  return figures;
}

base::Json reading_rows(const ReadBench& bench, const ReadFigures& figures, const std::string& command) {
  base::Json row = base::Json::object();
  row["what"] = text(bench.epochs, " epochs of ", figures.samples, " images in ", figures.shards, " shards, read by ",
                     "the loader");
  row["model"] = text("RandomResizedCrop(", to_text(bench.data.image_size), "), flip, normalise");
  row["batch"] = bench.batch;
  row["precision"] = std::string(name_of(bench.data.pixels));
  row["threads"] = bench.threads;
  row["order"] = std::string(name_of(bench.data.order));
  row["shard_bytes"] = figures.shard_bytes;
  row["memory_budget"] = bench.data.memory;
  row["peak_bytes"] = figures.peak_bytes();
  row["resident_before"] = figures.resident_bytes;
  row["open_seconds"] = figures.open_seconds;
  double seconds = 0, cpu_seconds = 0;
  int64_t missed = 0;
  base::Json resident = base::Json::array(), reads = base::Json::array();
  for (const auto& epoch : figures.epochs) {
    seconds += epoch.seconds;
    cpu_seconds += epoch.cpu_seconds;
    missed += epoch.missed;
    resident.push_back(base::Json(epoch.resident_bytes));
    reads.push_back(base::Json(epoch.reads));
  }
  row["resident_by_epoch"] = std::move(resident);
  row["reads_by_epoch"] = std::move(reads);
  row["seconds"] = seconds;
  row["cpu_seconds"] = cpu_seconds;
  row["samples_per_second"] = figures.samples_per_second();
  row["samples_not_seen_once"] = missed;
  row["peer"] = "none";
  row["command"] = command;
  row["commit"] = base::build_commit();
  row["machine"] = text(site::read_processor().model, ", ", site::usable_cores(), " cores");
  return base::Json::array({std::move(row)});
}

std::string reading_text(const ReadBench& bench, const ReadFigures& figures) {
  base::Table table({{"epoch"},
                     {"samples/s", base::Align::right},
                     {"resident", base::Align::right},
                     {"at most", base::Align::right},
                     {"reads", base::Align::right},
                     {"bytes read", base::Align::right},
                     {"not seen once", base::Align::right}});
  const auto bytes = [](int64_t count) { return base::format_bytes(static_cast<double>(count)); };
  for (size_t i = 0; i < figures.epochs.size(); ++i) {
    const ReadEpoch& epoch = figures.epochs[i];
    table.add({text(i), base::fixed(static_cast<double>(figures.samples) / epoch.seconds, 0),
               bytes(epoch.resident_bytes), bytes(epoch.peak_bytes), base::format_count(epoch.reads),
               bytes(epoch.read_bytes), text(epoch.missed)});
  }
  return text(base::format_count(figures.samples), " images in ", figures.shards, " shards of ",
              bytes(figures.shard_bytes), "; opened in ", base::format_duration(figures.open_seconds), "; ",
              bytes(figures.resident_bytes), " resident before the loader\n", table.to_text(), "at most ",
              bytes(figures.peak_bytes()), " where data.memory allows ", base::exact_bytes(bench.data.memory), "\n");
}

}  // namespace lockstep::measure
