// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/ddp.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <istream>
#include <memory>
#include <ostream>
#include <sstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/collectives.h"
#include "lockstep/measure/peer.h"
#include "lockstep/step/memory.h"
#include "lockstep/step/reducer.h"

namespace lockstep::measure {
namespace {

using base::text;

std::unique_ptr<Peer> start_ddp(const DdpBench& bench, const base::Path& folder) {
  for (const auto& file : base::embedded_files()) {
    if (file.name.ends_with("measure/peer_ddp.py")) base::write_file(folder / "peer_ddp.py", file.content);
  }
  const auto& job = bench.job;
  return std::make_unique<Peer>(std::vector<std::string>{
      "env", "-u", "OMP_WAIT_POLICY", bench.peer, (folder / "peer_ddp.py").string(), (folder / "meeting").string(),
      text(bench.ranks), job.model.name, text(job.training.global_batch), to_text(job.data.image_size),
      text(job.training.threads), name_of(job.training.optimizer.name)});
}

int64_t bytes_to_sum(const model::Network& network) {
  int64_t bytes = 0;
  for (const auto& parameter : network.parameters()) bytes += static_cast<int64_t>(parameter.tensor.nbytes());
  return bytes;
}

}  // namespace

double DdpTimes::ratio() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < peer.size(); ++i) ratios.push_back(peer[i] / ours[i]);
  return median(ratios);
}

double DdpTimes::hidden_share() const {
  return alone > 0 ? std::clamp(1 - median(exposed) / alone, 0.0, 1.0) : 0;
}

void serve_steps(const spec::Job& job, comm::Group& group, std::istream& in, std::ostream& out) {
  step::keep_freed_memory();
  at::set_num_threads(static_cast<int>(job.training.threads));
  auto network = model::make_network(job);
  step::Step step(network, group,
                  {.training = job.training, .device = at::kCPU, .objective = objective::make_objective(job)});
  step::Samples samples = made_up_samples(job, at::kCPU, group.rank(), group.size());
  const bool speaks = group.rank() == 0;
  if (speaks) out << "ready " << group.size() << std::endl;
  while (true) {
    std::string line;
    if (speaks && !std::getline(in, line)) line = "end";
    std::istringstream words(comm::broadcast_text(group, line));
    std::string what;
    int64_t count = 0;
    words >> what >> count;
    if (what == "end") return;
    if (what == "alone") {
      const auto times = time_all_reduce(group, {bytes_to_sum(network)}, count);
      if (speaks) out << median(times[0].seconds) << std::endl;
      continue;
    }
    double exposed = 0;
    const double start = base::steady_seconds();
    for (int64_t i = 0; i < count; ++i, ++samples.step) exposed += step.run(samples, 1e-4).communicate_seconds;
    const double steps = static_cast<double>(std::max<int64_t>(1, count));
    if (speaks) out << (base::steady_seconds() - start) / steps << " " << exposed / steps << std::endl;
  }
}

DdpTimes bench_ddp(const DdpBench& bench) {
  const base::TemporaryFolder folder;
  Peer ours(bench.workers);
  std::unique_ptr<Peer> peer;
  DdpTimes times;
  ours.ask("go 3");  // warm: thread pools, memory, kernels chosen
  times.alone = std::stod(ours.ask("alone 10"));
  if (!bench.peer.empty()) {
    peer = start_ddp(bench, folder.path());
    times.peer_greeting = peer->greeting();
  }
  for (int64_t round = 0; round < bench.rounds; ++round) {
    std::istringstream answer(ours.ask(text("go ", bench.steps)));
    double seconds = 0, exposed = 0;
    answer >> seconds >> exposed;
    times.ours.push_back(seconds);
    times.exposed.push_back(exposed);
    if (peer) times.peer.push_back(std::stod(peer->ask(text("go ", bench.steps))));
    bench.say(text("round ", round + 1, ": ours ", base::fixed(seconds * 1000, 1), " ms, ",
                   base::fixed(exposed * 1000, 1), " of them waiting",
                   peer ? text("; DDP ", base::fixed(times.peer.back() * 1000, 1), " ms") : ""));
  }
  return times;
}

base::Json ddp_row(const DdpBench& bench, const DdpTimes& times, const std::string& command) {
  const auto& job = bench.job;
  base::Json row = base::Json::object();
  row["what"] = "overlapped reducer";
  row["model"] = job.model.name;
  row["batch"] = job.training.global_batch;
  row["image_size"] = to_json(job.data.image_size);
  row["precision"] = name_of(job.training.precision);
  row["optimizer"] = name_of(job.training.optimizer.name);
  row["ranks"] = bench.ranks;
  row["threads"] = job.training.threads;
  row["samples_per_second"] = static_cast<double>(job.training.global_batch) / median(times.ours);
  row["milliseconds"] = median(times.ours) * 1000;
  row["all_reduce_alone_milliseconds"] = times.alone * 1000;
  row["exposed_milliseconds"] = median(times.exposed) * 1000;
  row["hidden_share"] = times.hidden_share();
  if (!times.peer.empty()) {
    row["peer"] = text("PyTorch DDP with gloo ", times.peer_greeting.substr(times.peer_greeting.find(' ') + 1));
    row["peer_samples_per_second"] = static_cast<double>(job.training.global_batch) / median(times.peer);
    row["ratio"] = times.ratio();
  }
  row["command"] = command;
  row["commit"] = base::build_commit();
  row["machine"] = machine_name(at::kCPU);
  return row;
}

}  // namespace lockstep::measure
