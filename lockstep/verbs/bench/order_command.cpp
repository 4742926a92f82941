// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/store.h"
#include "lockstep/measure/order_quality.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::text;

base::CommandLine order_line() {
  return {"bench order",
          "SHARDS",
          "how well the orders mix: windows of several lengths beside a full shuffle; reads indexes only",
          {{"--batch", "N", "samples of a batch (default 256)"},
           {"--epochs", "N", "to look at (default 4)"},
           {"--extent", "BYTES", "of a window's extents (default 8 MiB)"},
           {"--windows", "N,N", "extents in a window (default 1,4,16,64)"},
           {"--by-class", "", "as if the samples were stored class by class: what a shuffle must cope with at worst"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
          "lockstep bench order data/photos/train\n"};
}

// As stored, or sorted by class.
std::vector<int32_t> labels_of(const loader::Collection& collection, bool by_class) {
  std::vector<int32_t> labels;
  for (const auto& sample : collection.samples) labels.push_back(sample.label);
  if (by_class) std::sort(labels.begin(), labels.end());
  return labels;
}

base::Json row_of(const measure::OrderQuality& quality, const measure::OrderBench& bench, const std::string& data) {
  base::Json row = base::Json::object();
  row["what"] = text("order ", quality.order, ", ", data);
  row["model"] = "none";
  row["batch"] = bench.batch;
  row["precision"] = "none";
  row["displacement"] = quality.displacement;
  row["neighbours_in_batch"] = quality.neighbours;
  row["met_again_over_chance"] = quality.met_again;
  row["classes_in_batch"] = quality.classes;
  row["class_deviation"] = quality.class_deviation;
  row["peer"] = "a full shuffle";
  return row;
}

}  // namespace

LOCKSTEP_BENCH(order)(const std::vector<std::string>& words) {
  const base::CommandLine line = order_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("order", words, arguments);
  const measure::OrderBench bench{.batch = arguments.int_or("--batch", 256), .epochs = arguments.int_or("--epochs", 4)};
  if (bench.batch < 2 || bench.epochs < 2) throw base::Error(base::Blame::user, "--batch and --epochs count from 2");
  const loader::Collection collection = loader::scan_folder(arguments.only("a folder of shards"));
  if (!collection.shards) throw base::Error(base::Blame::user, text(collection.root, " is no folder of shards"));
  const auto labels = labels_of(collection, arguments.has("--by-class"));
  const auto n = static_cast<int64_t>(labels.size());
  const int64_t bytes = base::parse_bytes(arguments.value_or("--extent", "8 MiB"));
  const loader::Extents extents(*loader::open_store(collection), n, bytes);
  std::vector<measure::OrderQuality> all;
  loader::Sequence full(loader::Sequence::Kind::full, n, bench.seed);
  all.push_back(measure::measure_order("full", full, labels, bench));
  for (const auto& word : base::split(arguments.value_or("--windows", "1,4,16,64"), ',')) {
    const int64_t window = std::max<int64_t>(1, std::atoll(word.c_str()));
    loader::Sequence windows(loader::Sequence::Kind::windows, n, bench.seed, &extents, window);
    all.push_back(measure::measure_order(text("windows of ", window), windows, labels, bench));
  }
  const std::string data = text(n, " samples in ", extents.all().size(), " extents of ", base::exact_bytes(bytes),
                                arguments.has("--by-class") ? ", stored class by class" : ", stored as prepared");
  base::Json rows = base::Json::array();
  base::Table table({{"order"},
                     {"displacement", base::Align::right},
                     {"neighbours in a batch", base::Align::right},
                     {"pairs met again / chance", base::Align::right},
                     {"classes in a batch", base::Align::right},
                     {"class deviation", base::Align::right}});
  for (const auto& quality : all) {
    base::Json row = row_of(quality, bench, data);
    row["command"] = bench_line("order", words);
    row["commit"] = base::build_commit();
    row["machine"] = "any: nothing is timed";
    rows.push_back(std::move(row));
    table.add({quality.order, base::fixed(quality.displacement, 3), base::fixed(quality.neighbours, 2),
               base::fixed(quality.met_again, 2), base::fixed(quality.classes, 1),
               base::fixed(quality.class_deviation, 2)});
  }
  if (base::give_json(arguments, rows)) return base::kExitDone;
  std::printf("%s, batches of %ld\n%s", data.c_str(), static_cast<long>(bench.batch), table.to_text().c_str());
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
