// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/collectives.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/forecast/many_ranks.h"
#include "lockstep/measure/bench.h"
#include "lockstep/ranks/launch.h"
#include "lockstep/step/reducer.h"

namespace lockstep::measure {

std::vector<CollectiveTime> time_all_reduce(comm::Group& group, const std::vector<int64_t>& bytes, int64_t rounds,
                                            spec::ReducePrecision precision) {
  constexpr int64_t kWarm = 2;
  const bool halved = precision == spec::ReducePrecision::bf16;  // the buckets are of fp32 still, what is sent is not
  std::vector<CollectiveTime> times;
  for (const int64_t size : bytes) {
    std::vector<at::Tensor> buckets;
    for (const double bucket : forecast::bucket_bytes(static_cast<double>(halved ? 2 * size : size))) {
      const int64_t numbers = std::max<int64_t>(1, static_cast<int64_t>(bucket) / 4);
      buckets.push_back(at::zeros({numbers}, halved ? at::kBFloat16 : at::kFloat));
    }
    CollectiveTime time{size, {}};
    for (int64_t round = -kWarm; round < rounds; ++round) {
      group.barrier();
      const double start = base::steady_seconds();
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      for (at::Tensor& bucket : buckets) {
        std::vector<at::Tensor> one{bucket};
        works.push_back(group.group()->allreduce(one));
      }
      for (const auto& work : works) work->wait();
      if (round >= 0) time.seconds.push_back(base::steady_seconds() - start);
    }
    times.push_back(std::move(time));
  }
  return times;
}

base::Json collective_rows(const std::vector<CollectiveTime>& times, int64_t ranks, const std::string& command) {
  base::Json rows = base::Json::array();
  for (const auto& time : times) {
    base::Json row = base::Json::object();
    row["what"] = "all-reduce alone";
    row["ranks"] = ranks;
    row["bytes"] = time.bytes;
    row["seconds"] = median(time.seconds);
    row["fastest"] = *std::min_element(time.seconds.begin(), time.seconds.end());
    row["slowest"] = *std::max_element(time.seconds.begin(), time.seconds.end());
    row["command"] = command;
    row["commit"] = base::build_commit();
    row["machine"] = machine_name(at::kCPU);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> bench_in_ranks(const std::vector<std::string>& words, int64_t ranks) {
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string(), "bench"};
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--ranks") {
      ++i;
    } else if (!words[i].starts_with("--ranks=")) {
      command.push_back(words[i]);
    }
  }
  return ranks::launch_line(ranks::find_launcher(site::read_scheduler()), {}, ranks, command);
}

}  // namespace lockstep::measure
