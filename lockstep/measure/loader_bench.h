// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/measure/bench_images.h"

namespace lockstep::measure {

struct LoaderBench {
  int64_t images = 512;
  int64_t batch = 64;
  int64_t threads = 1;           // decode threads, ours and each peer's; all on as many cores
  int64_t rounds = 7;            // everybody's epochs alternate, so that a busy machine slows all
  std::string python = {};       // has the peers' packages; empty: ours alone
  std::string photographs = {};  // a folder to make the images from; empty: made up
  std::vector<std::string> peers = {"torchvision", "pillow", "webdataset", "dali", "dali-aliased", "ffcv"};
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

struct EpochCost {
  double seconds = 0;      // by the clock on the wall
  double cpu_seconds = 0;  // of all threads and processes: what a core costs, however busy the machine
  double samples = 0;

  double per_core_second() const { return samples / cpu_seconds; }
};

struct Contender {
  std::string name;
  std::string version;
  std::vector<EpochCost> rounds;

  double samples_per_second() const;       // median of the rounds
  double samples_per_core_second() const;  // likewise
};

struct LoaderRow {  // one kind of data
  std::string data;
  Contender ours;
  Contender limit;  // bare libjpeg-turbo, whole images, output discarded
  std::vector<Contender> peers;

  // Medians of the rounds' ratios, per core second; above 1: ours is faster.
  double ratio_to(const Contender& other) const;
  const Contender* best_peer() const;  // null without peers
};

struct LoaderFigures {
  ImageSet images;
  std::vector<LoaderRow> rows;        // plain files; shards with restart markers
  std::vector<std::string> left_out;  // "ffcv: why"
};

LoaderFigures bench_loader(const LoaderBench& bench);

// Rows of results/*.json: one for each kind of data, then one for each peer.
base::Json loader_rows(const LoaderBench& bench, const LoaderFigures& figures, const std::string& command);

}  // namespace lockstep::measure
