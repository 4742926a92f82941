// SPDX-License-Identifier: Apache-2.0
// trace_torch_probe JOB [--ranks N] [--rows N] [--steps N] [--cudnn] [--evaluate] [--events] [--set a.b=c ...]: traces
// the job's step and prints what was recorded: bytes by class at the peak of live storages, operators by kind, counts
// and time; with --events every event, one a line.
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/spec/job.h"
#include "lockstep/trace/trace.h"

namespace {

using namespace lockstep;

void print(const forecast::Recording& recording) {
  std::map<std::string, int64_t> live;
  std::map<std::string, int64_t> at_peak;
  std::map<int64_t, const forecast::Event*> alive;
  std::map<std::string, std::pair<int64_t, double>> kinds;
  int64_t now = 0;
  int64_t peak = 0;
  for (const auto& event : recording.events) {
    if (event.kind == forecast::EventKind::birth) {
      alive[event.id] = &event;
      live[name_of(event.memory)] += event.bytes;
      now += event.bytes;
      if (now > peak) {
        peak = now;
        at_peak = live;
      }
    } else if (event.kind == forecast::EventKind::death) {
      live[name_of(alive.at(event.id)->memory)] -= alive.at(event.id)->bytes;
      now -= alive.at(event.id)->bytes;
      alive.erase(event.id);
    } else if (event.kind == forecast::EventKind::run) {
      const auto& call = recording.operators[static_cast<size_t>(event.id)];
      auto& row = kinds[std::string(name_of(call.phase)) + " " + std::string(name_of(call.kind)) + " " +
                        std::string(name_of(call.type))];
      ++row.first;
      row.second += call.flops;
    }
  }
  std::printf("%s: %zu events, %zu operators, %zu blocks, %lld parameters\n", recording.title.c_str(),
              recording.events.size(), recording.operators.size(), recording.blocks.size(),
              static_cast<long long>(recording.parameters));
  std::printf("peak %.6f GB\n", static_cast<double>(peak) / 1e9);
  for (const auto& [name, bytes] : at_peak)
    std::printf("  %-12s %.6f GB\n", name.c_str(), static_cast<double>(bytes) / 1e9);
  for (const auto& [name, row] : kinds) {
    std::printf("  %-50s %8lld calls %12.3f GFLOP\n", name.c_str(), static_cast<long long>(row.first),
                row.second / 1e9);
  }
}

void print_events(const forecast::Recording& recording) {
  for (const auto& event : recording.events) {
    std::printf("%s %lld", std::string(name_of(event.kind)).c_str(), static_cast<long long>(event.id));
    if (event.kind == forecast::EventKind::birth) {
      std::printf(" %lld %s", static_cast<long long>(event.bytes), std::string(name_of(event.memory)).c_str());
    } else if (event.kind == forecast::EventKind::run) {
      const auto& call = recording.operators[static_cast<size_t>(event.id)];
      std::printf(" %s %s block %lld", call.name.c_str(), std::string(name_of(call.phase)).c_str(),
                  static_cast<long long>(call.block));
      for (const int64_t size : call.shape) std::printf(" %lld", static_cast<long long>(size));
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  trace::Simulation simulation;
  std::vector<std::string> sets;
  bool evaluate = false;
  bool events = false;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--evaluate") evaluate = true;
    if (word == "--events") events = true;
    if (word == "--ranks") simulation.ranks = std::stoll(argv[++i]);
    if (word == "--rows") simulation.rows = std::stoll(argv[++i]);
    if (word == "--steps") simulation.steps = std::stoll(argv[++i]);
    if (word == "--cudnn") simulation.attention = trace::Attention::cudnn;
    if (word == "--set") sets.push_back(argv[++i]);
  }
  try {
    const spec::Job job = spec::load_job(argv[1], sets);
    const auto start = std::chrono::steady_clock::now();
    const auto recording = evaluate ? trace::trace_evaluation(job, simulation) : trace::trace_step(job, simulation);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (events) {
      print_events(recording);
      return 0;
    }
    print(recording);
    std::printf("%.3f s\n", seconds);
  } catch (const base::Error& error) {
    std::printf("%s\n", error.message().c_str());
    return error.exit_code();
  }
}
