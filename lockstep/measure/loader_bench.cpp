// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/loader_bench.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <sstream>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/jpeg_door.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/store.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/peer.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/processor.h"

namespace lockstep::measure {
namespace {

using base::text;

// This process and all it starts: on the first cores it may use, as many as there are threads. Put back at the end.
class PinnedCores {
 public:
  explicit PinnedCores(int64_t num_cores) {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) base::throw_errno("cannot read the CPU affinity");
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&few) < num_cores; ++core) {
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &few);
    }
    if (sched_setaffinity(0, sizeof few, &few) != 0) base::throw_errno("cannot set the CPU affinity");
  }
  ~PinnedCores() { sched_setaffinity(0, sizeof before_, &before_); }
  PinnedCores(const PinnedCores&) = delete;
  PinnedCores& operator=(const PinnedCores&) = delete;

 private:
  cpu_set_t before_;
};

template <class Work>
EpochCost cost_of(int64_t samples, const Work& work) {
  const double start = base::steady_seconds(), cpu = base::process_processor_seconds();
  work();
  return {base::steady_seconds() - start, base::process_processor_seconds() - cpu, static_cast<double>(samples)};
}

// Keeps one loader, as a training does. It prefetches a few batches and then rests; an epoch's worth of batches costs
// what it takes until it rests again.
class OurLoader {
 public:
  OurLoader(const LoaderBench& bench, const loader::Collection& collection) : images_(bench.images) {
    loader::LoaderOptions options;
    options.data.image_size = 224;
    options.data.crop_scale_min = 0.08;  // everybody's RandomResizedCrop
    options.global_batch = bench.batch;
    options.threads = bench.threads;
    loader_ = loader::make_loader(collection, options, {options.seed, 0, 0});
    epoch();  // warm
  }

  EpochCost epoch() {
    double end = 0;
    const double start = base::steady_seconds();
    EpochCost cost = cost_of(images_, [&] {
      for (int64_t step = 0; step < loader_->steps_per_epoch(); ++step) loader_->recycle(loader_->next());
      end = rest();
    });
    cost.seconds = end - start;
    return cost;
  }

 private:
  // Until it has done nothing for a fifth of a second: on a busy machine a thread may wait that long for its turn.
  // Returns when it was last seen at work.
  static double rest() {
    double at_work = base::steady_seconds(), before = base::process_processor_seconds();
    for (int quiet = 0; quiet < 10; ++quiet) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const double now = base::process_processor_seconds();
      if (now - before > 5e-4) {
        quiet = 0;
        at_work = base::steady_seconds();
      }
      before = now;
    }
    return at_work;
  }

  int64_t images_;
  std::unique_ptr<loader::Loader> loader_;
};

EpochCost bare_decodes(const LoaderBench& bench, const loader::Collection& collection) {
  const auto store = loader::open_store(collection);
  std::vector<std::vector<std::byte>> files(collection.samples.size());
  for (size_t i = 0; i < files.size(); ++i) store->read(static_cast<int64_t>(i), files[i]);
  image::JpegReader reader;
  return cost_of(bench.images, [&] {
    for (const auto& file : files) {
      reader.open(file);
      reader.discard();
    }
  });
}

EpochCost peer_epoch(Peer& peer) {
  EpochCost cost;
  std::istringstream answer(peer.ask("go"));
  answer >> cost.seconds >> cost.cpu_seconds >> cost.samples;
  base::ensure(!answer.fail(), "the peer answers seconds, CPU seconds and samples");
  return cost;
}

template <class Figure>
double median_of(const std::vector<EpochCost>& rounds, const Figure& figure) {
  std::vector<double> values;
  for (const auto& round : rounds) values.push_back(figure(round));
  return median(values);
}

struct Field {  // what one peer needs
  std::string kind;
  base::Path source;
};

std::vector<Field> fields_of(const LoaderBench& bench, const ImageSet& images, bool restarted) {
  std::vector<Field> fields;
  for (const auto& kind : bench.peers) {
    if (kind == "webdataset") {
      fields.push_back({kind, restarted ? images.restarted_tars : images.tars});
    } else if (!restarted || kind == "ffcv") {
      fields.push_back({kind, images.folder});  // ffcv reads its own format only
    } else if (kind.starts_with("dali")) {
      fields.push_back({kind, images.restarted_tars});  // the others read no shards; webdataset has torchvision's way
    }
  }
  return fields;
}

class PeerRunner {
 public:
  PeerRunner(const LoaderBench& bench, const base::Path& folder) : bench_(bench), script_(folder / "peer_loader.py") {
    for (const auto& file : base::embedded_files()) {
      if (file.name.ends_with("measure/peer_loader.py")) base::write_file(script_, file.content);
    }
  }

  // Null when the packages are missing: said in `left_out`.
  std::unique_ptr<Peer> start(const Field& field, std::vector<std::string>& left_out) const {
    try {
      return std::make_unique<Peer>(std::vector<std::string>{"env", "-u", "OMP_WAIT_POLICY", bench_.python,
                                                             script_.string(), field.kind, field.source.string(),
                                                             text(bench_.threads), text(bench_.batch)});
    } catch (const base::Error& error) {
      left_out.push_back(text(field.kind, ": ", error.what()));
      bench_.say(text(field.kind, " is left out: ", error.what()));
      return nullptr;
    }
  }

 private:
  const LoaderBench& bench_;
  base::Path script_;
};

LoaderRow run_row(const LoaderBench& bench, bool restarted, const base::Path& folder, LoaderFigures& figures) {
  LoaderRow row;
  row.data = restarted ? "shards with restart markers" : "plain JPEG files";
  const auto source = restarted ? figures.images.restarted_tars : figures.images.folder;
  const loader::Collection collection = loader::scan_folder(source.string());
  row.ours.name = "lockstep";
  row.limit.name = "bare libjpeg-turbo decode";
  std::vector<std::unique_ptr<Peer>> running;
  if (!bench.python.empty()) {
    const PeerRunner runner(bench, folder);
    for (const auto& field : fields_of(bench, figures.images, restarted)) {
      auto peer = runner.start(field, figures.left_out);
      if (!peer) continue;
      row.peers.push_back({field.kind, peer->greeting().substr(peer->greeting().find(' ') + 1), {}});
      running.push_back(std::move(peer));
    }
  }
  OurLoader ours(bench, collection);
  for (int64_t round = 0; round < bench.rounds; ++round) {
    row.limit.rounds.push_back(bare_decodes(bench, collection));
    row.ours.rounds.push_back(ours.epoch());
    std::string line = text(row.data, ", round ", round + 1, ", samples per core second: limit ",
                            base::fixed(row.limit.rounds.back().per_core_second(), 0), ", lockstep ",
                            base::fixed(row.ours.rounds.back().per_core_second(), 0));
    for (size_t i = 0; i < running.size(); ++i) {
      row.peers[i].rounds.push_back(peer_epoch(*running[i]));
      line += text(", ", row.peers[i].name, " ", base::fixed(row.peers[i].rounds.back().per_core_second(), 0));
    }
    bench.say(line);
  }
  return row;
}

}  // namespace

double Contender::samples_per_second() const {
  return median_of(rounds, [](const EpochCost& cost) { return cost.samples / cost.seconds; });
}

double Contender::samples_per_core_second() const {
  return median_of(rounds, [](const EpochCost& cost) { return cost.per_core_second(); });
}

double LoaderRow::ratio_to(const Contender& other) const {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.rounds.size(); ++i) {
    ratios.push_back(ours.rounds[i].per_core_second() / other.rounds[i].per_core_second());
  }
  return median(ratios);
}

const Contender* LoaderRow::best_peer() const {
  const auto best = std::min_element(
      peers.begin(), peers.end(), [this](const Contender& a, const Contender& b) { return ratio_to(a) < ratio_to(b); });
  return best == peers.end() ? nullptr : &*best;
}

LoaderFigures bench_loader(const LoaderBench& bench) {
  const PinnedCores pinned(bench.threads);
  const base::TemporaryFolder folder;
  LoaderFigures figures;
  figures.images = write_images(folder.path(), bench.images, bench.photographs);
  bench.say(text(bench.images, " images of ", kImageWidth, " x ", kImageHeight, ", mean ",
                 figures.images.jpeg_bytes / bench.images, " bytes"));
  for (const bool restarted : {false, true}) {
    figures.rows.push_back(run_row(bench, restarted, folder.path(), figures));
  }
  return figures;
}

base::Json loader_rows(const LoaderBench& bench, const LoaderFigures& figures, const std::string& command) {
  base::Json all = base::Json::array({});
  const auto begin_row = [&](const LoaderRow& from) {
    base::Json row = base::Json::object();
    row["what"] = text("loader, ", from.data);
    row["model"] = "RandomResizedCrop(224), flip, normalise";
    row["batch"] = bench.batch;
    row["precision"] = "fp32";
    row["threads"] = bench.threads;
    row["pictures"] = text(bench.images, " of 500x375 q90, mean ", figures.images.jpeg_bytes / bench.images, " bytes, ",
                           bench.photographs.empty() ? "made up" : "from photographs");
    row["samples_per_second"] = from.ours.samples_per_second();
    row["samples_per_core_second"] = from.ours.samples_per_core_second();
    return row;
  };
  const auto end_row = [&](base::Json row) {
    row["command"] = command;
    row["commit"] = base::build_commit();
    row["machine"] = text(site::read_processor().model, ", ", site::usable_cores(), " cores");
    all.push_back(std::move(row));
  };
  for (const auto& from : figures.rows) {
    base::Json row = begin_row(from);
    row["limit_samples_per_core_second"] = from.limit.samples_per_core_second();
    row["ratio_to_limit"] = from.ratio_to(from.limit);
    if (const Contender* best = from.best_peer()) {
      row["peer"] = text(best->name, " ", best->version);
      row["ratio_to_best_peer"] = from.ratio_to(*best);
    }
    end_row(std::move(row));
    for (const auto& peer : from.peers) {
      base::Json each = begin_row(from);
      each["peer"] = text(peer.name, " ", peer.version);
      each["peer_samples_per_second"] = peer.samples_per_second();
      each["peer_samples_per_core_second"] = peer.samples_per_core_second();
      each["ratio"] = from.ratio_to(peer);
      end_row(std::move(each));
    }
  }
  return all;
}

}  // namespace lockstep::measure
