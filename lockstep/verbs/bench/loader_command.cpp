// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/loader_bench.h"
#include "lockstep/measure/loader_read.h"
#include "lockstep/site/cores.h"
#include "lockstep/spec/job.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::text;

base::CommandLine loader_line() {
  return {
      "bench loader",
      "",
      "our loader beside other people's, the same images on the same cores, in turns",
      {{"--peers", "", "also time torchvision, Pillow, webdataset, DALI and FFCV, as far as --python has them"},
       {"--python", "FILE", "the peers' Python (default .deps/oracles/bin/python)"},
       {"--images", "DIR", "make the images from the photographs under DIR (default: made up)"},
       {"--count", "N", "how many (default 512)"},
       {"--batch", "N", "samples of a batch (default 64)"},
       {"--threads", "N", "decode threads and cores of each (default 1)"},
       {"--rounds", "N", "epochs of each, in turns (default 7)"},
       {"--shards", "DIR", "instead: whole epochs of these shards by our loader; rate, memory and reads of each"},
       {"--epochs", "N", "of --shards: how many (default 10)"},
       {"--set", "data.KEY=VALUE", "of --shards: how it is read: image_size, memory, order, extent, window, augment"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
      "lockstep bench loader --peers --json results/loader.json\n"
      "lockstep bench loader --shards data/photos/train --set data.memory=256MiB\n"};
}

void print_row(const measure::LoaderRow& row) {
  base::Table table({{row.data},
                     {"samples/s", base::Align::right},
                     {"per core second", base::Align::right},
                     {"lockstep is", base::Align::right}});
  const auto add = [&](const measure::Contender& from) {
    table.add({text(from.name, " ", from.version), base::fixed(from.samples_per_second(), 0),
               base::fixed(from.samples_per_core_second(), 0), text(base::fixed(row.ratio_to(from), 2), " x")});
  };
  add(row.ours);
  for (const auto& peer : row.peers) add(peer);
  add(row.limit);
  std::printf("%s", table.to_text().c_str());
  if (const measure::Contender* best = row.best_peer()) {
    std::printf("ratio to the best peer (%s) %.2f, to the limit %.2f\n\n", best->name.c_str(), row.ratio_to(*best),
                row.ratio_to(row.limit));
  } else {
    std::printf("ratio to the limit %.2f\n\n", row.ratio_to(row.limit));
  }
}

spec::Data data_of(const base::Arguments& arguments, const std::string& folder) {
  base::Json document = base::Json::object();
  document["name"] = "bench";
  document["data"] = base::Json::object();
  document["data"]["train"] = folder;
  document["data"]["crop_scale_min"] = 0.08;
  document["model"] = base::Json::object();
  document["model"]["name"] = "none";
  document["training"] = base::Json::object();
  document["training"]["epochs"] = 1;
  return spec::parse_job(document, arguments.values("--set")).data;
}

int read_shards(const std::vector<std::string>& words, const base::Arguments& arguments) {
  measure::ReadBench bench;
  bench.folder = *arguments.value("--shards");
  bench.data = data_of(arguments, bench.folder);
  bench.batch = arguments.int_or("--batch", bench.batch);
  bench.threads = arguments.int_or("--threads", bench.threads);
  bench.epochs = arguments.int_or("--epochs", bench.epochs);
  if (std::min({bench.batch, bench.threads, bench.epochs}) < 1) {
    throw base::Error(base::Blame::user, "--batch, --threads and --epochs count from 1",
                      "leave them out for the defaults");
  }
  bench.say = say_progress;
  const measure::ReadFigures figures = measure::bench_reading(bench);
  if (base::give_json(arguments, measure::reading_rows(bench, figures, bench_line("loader", words))))
    return base::kExitDone;
  std::printf("%s", measure::reading_text(bench, figures).c_str());
  return base::kExitDone;
}

}  // namespace

LOCKSTEP_BENCH(loader)(const std::vector<std::string>& words) {
  const base::CommandLine line = loader_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("loader", words, arguments);
  if (arguments.has("--shards")) return read_shards(words, arguments);
  measure::LoaderBench bench;
  bench.images = arguments.int_or("--count", bench.images);
  bench.batch = arguments.int_or("--batch", bench.batch);
  bench.threads = arguments.int_or("--threads", bench.threads);
  bench.rounds = arguments.int_or("--rounds", bench.rounds);
  if (std::min({bench.images - 1, bench.batch, bench.threads, bench.rounds}) < 1) {
    throw base::Error(base::Blame::user, "--count counts from 2; --batch, --threads and --rounds from 1",
                      "leave them out for the defaults");
  }
  if (bench.threads > site::usable_cores()) {
    throw base::Error(base::Blame::user,
                      text("--threads ", bench.threads, ": there are ", site::usable_cores(), " cores"),
                      "each thread is given a core of its own");
  }
  bench.photographs = arguments.value_or("--images", "");
  if (arguments.has("--peers")) bench.python = arguments.value_or("--python", ".deps/oracles/bin/python");
  if (!bench.python.empty() && !std::filesystem::exists(bench.python)) {
    throw base::Error(base::Blame::user, text("there is no ", bench.python),
                      "--python FILE, or `scripts/deps.sh oracles` in the source tree");
  }
  bench.say = say_progress;
  const measure::LoaderFigures figures = measure::bench_loader(bench);
  if (base::give_json(arguments, measure::loader_rows(bench, figures, bench_line("loader", words))))
    return base::kExitDone;
  for (const auto& row : figures.rows) print_row(row);
  for (const auto& why : figures.left_out) std::printf("left out: %s\n", why.c_str());
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
