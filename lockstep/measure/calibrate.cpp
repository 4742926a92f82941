// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/calibrate.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/operator_watch.h"
#include "lockstep/step/reducer.h"

namespace lockstep::measure {
namespace {

using base::Json;
using base::text;

constexpr int64_t kCallsOfAPass = 4;
constexpr double kSaveEvery = 10;  // seconds

void allow_tf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
  at::globalContext().setAllowTF32CuDNN(allow);
}

// What is not what the case is about: making outputs, looking at them.
bool is_beside(const SeenOperator& seen) {
  return seen.what.kind == forecast::OperatorClass::view || seen.what.kind == forecast::OperatorClass::host;
}

void run_case(const SweepCase& one, const step::Gpu* gpu, Json& rows) {
  allow_tf32(one.type == forecast::NumberType::tf32);
  const auto work = one.make();
  const double start = base::steady_seconds();
  work();  // chooses algorithms, takes memory
  if (gpu) gpu->synchronize();
  // The processor is slow enough: few calls of what takes long.
  const bool slow = !gpu && base::steady_seconds() - start > 0.05;
  const auto several = [&] {
    for (int64_t i = 0; i < (slow ? 1 : kCallsOfAPass); ++i) work();
  };
  if (!slow) work();
  const auto seen = watch_operators(several, {.gpu = gpu, .repeats = 2, .host = false, .scratch = true});
  for (const auto& each : seen.operators) {
    if (is_beside(each)) continue;
    Json row = operator_row(each);
    row["layout"] = one.contiguous ? "contiguous" : "channels_last";
    rows.push_back(std::move(row));
  }
}

double seconds_of_copy(const at::Tensor& from, at::Device device, const step::Gpu& gpu) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const double start = base::steady_seconds();
    const at::Tensor there = from.to(device, from.scalar_type(), /*non_blocking=*/true);
    gpu.synchronize();
    if (i > 0) times.push_back(base::steady_seconds() - start);
  }
  return median(times);
}

void time_transfers(const step::Gpu& gpu, Json& rows) {
  for (const int64_t bytes : {40'000, 1'000'000, 20'000'000, 160'000'000}) {
    const at::Tensor here = at::empty({bytes / 4}, at::kFloat).fill_(1);
    for (const bool pinned : {false, true}) {
      Json row = Json::object();
      row["what"] = "transfer";
      row["direction"] = "to device";
      row["pinned"] = pinned;
      row["bytes"] = bytes;
      row["seconds"] = seconds_of_copy(pinned ? here.pin_memory() : here, gpu.device(), gpu);
      rows.push_back(std::move(row));
    }
    const at::Tensor there = here.to(gpu.device());
    Json row = Json::object();
    row["what"] = "transfer";
    row["direction"] = "to host";
    row["pinned"] = false;
    row["bytes"] = bytes;
    row["seconds"] = seconds_of_copy(there, at::kCPU, gpu);
    rows.push_back(std::move(row));
  }
}

}  // namespace

CalibrateResult calibrate(const CalibrateOptions& options) {
  CalibrateResult result;
  result.rows = Json::array();
  std::unique_ptr<step::Gpu> gpu;
  if (options.device.is_cuda()) {
    gpu = std::make_unique<step::Gpu>(options.device);
    try {
      time_transfers(*gpu, result.rows);
    } catch (const std::exception& error) {
      options.say(text("transfers: ", error.what()));
    }
  }
  const auto cases = make_sweep(SweepRange::of(options.device), options.seed);
  const double start = base::steady_seconds();
  double saved = start;
  for (const auto& one : cases) {
    const double now = base::steady_seconds();
    if (now - start > options.seconds) {
      ++result.left_out;
      continue;
    }
    if (now - saved > kSaveEvery) {
      options.save(result.rows);
      options.say(text(result.cases, " of ", cases.size(), " cases, ", base::fixed(now - start, 0), " s"));
      saved = now;
    }
    try {
      run_case(one, gpu.get(), result.rows);
      ++result.cases;
    } catch (const std::exception& error) {  // too large for this GPU, a type that it lacks: the others go on
      ++result.failed;
      const std::string words = error.what();
      options.say(text(one.label, " ", name_of(one.type), ": ", words.substr(0, words.find('\n'))));
    }
  }
  allow_tf32(false);
  options.save(result.rows);
  return result;
}

}  // namespace lockstep::measure
