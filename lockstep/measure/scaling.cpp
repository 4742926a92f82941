// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/scaling.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/collective.h"
#include "lockstep/forecast/scaling.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/child.h"

namespace lockstep::measure {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

double median_over(const std::vector<ScalingRun>& runs, double ScalingRun::*member) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const auto& run : runs) values.push_back(run.*member);
  return median(values);
}

int64_t batch_of(const ScalingBench& bench, int64_t ranks) {
  return bench.job.training.global_batch * (bench.mode == ScalingMode::weak ? ranks : 1);
}

// Runs ourselves with these words; a failure carries the child's last words.
void run_program(const ScalingBench& bench, const std::vector<std::string>& words, const std::string& what) {
  std::vector<std::string> command{kThisProgram};
  command.insert(command.end(), words.begin(), words.end());
  const ChildEnd end = run_child(command, {}, bench.seconds);
  if (end.trouble.empty()) return;
  const auto blame = end.exit_code == static_cast<int>(Blame::user) ? Blame::user : Blame::machine;
  throw Error(blame, text(what, ": ", end.trouble, end.last_words.empty() ? "" : ": ", end.last_words),
              text("try it alone: lockstep ", base::join(words, " ")));
}

// Seconds of all-reduces alone, one for each size.
std::vector<double> time_alone(const ScalingBench& bench, int64_t ranks, const std::vector<double>& sizes) {
  const base::TemporaryFolder folder;
  const auto file = folder.path() / "alone.json";
  std::vector<std::string> words{"bench", "collectives", "--here", "--ranks", text(ranks), "--json", file.string()};
  words.insert(words.end(), {"--precision", name_of(bench.job.training.reduce_precision)});
  for (const double size : sizes) {
    words.insert(words.end(), {"--bytes", text(static_cast<int64_t>(size), " B")});
  }
  run_program(bench, words, text("all-reduce alone on ", ranks, " ranks"));
  std::vector<double> seconds;
  const Json rows = base::read_json(file);
  for (const auto& row : rows.items()) seconds.push_back(row.at("seconds").as_double());
  return seconds;
}

}  // namespace

double ScalingPoint::rate() const {
  return median_over(runs, &ScalingRun::rate);
}
double ScalingPoint::step_seconds() const {
  return median_over(runs, &ScalingRun::step_seconds);
}
double ScalingPoint::exposed_seconds() const {
  return median_over(runs, &ScalingRun::exposed_seconds);
}

std::optional<double> ScalingPoint::hidden_share() const {
  if (ranks == 1 || alone_seconds <= 0) return std::nullopt;
  return std::clamp(1 - exposed_seconds() / alone_seconds, 0.0, 1.0);
}

Efficiency efficiency_of(const ScalingPoint& point, const ScalingPoint& base) {
  std::vector<double> all;
  for (const auto& run : point.runs) {
    all.push_back(forecast::scaling_efficiency(run.rate, point.ranks, base.rate(), base.ranks));
  }
  return {median(all), *std::min_element(all.begin(), all.end()), *std::max_element(all.begin(), all.end())};
}

double summed_bytes(const spec::Training& training, double parameters) {
  const auto& phases = training.phases;
  const bool freezes =
      std::any_of(phases.begin(), phases.end(), [](const auto& one) { return !one.train_from.empty(); });
  if (training.zero >= 2 || training.virtual_ranks > 0 || freezes) return 0;
  return parameters * (training.reduce_precision == spec::ReducePrecision::bf16 ? 2 : 4);
}

std::optional<double> planned_rate(const ScalingPoint& point, const ScalingPoint& base,
                                   const std::optional<forecast::Network>& link) {
  if (!link || point.ranks == base.ranks || base.ranks != 1 || point.gradient_bytes <= 0) return std::nullopt;
  const double samples = point.rate() * point.step_seconds();  // of a step: the last batch of an epoch is smaller
  const forecast::RankCosts costs{.step_seconds = samples / static_cast<double>(point.ranks) / base.rate(),
                                  .gradient_bytes = point.gradient_bytes};
  const auto planned = forecast::forecast_ranks(costs, point.ranks, [&](double bytes, int64_t ranks) {
    forecast::Network network = *link;
    network.ranks = ranks;
    return forecast::mpi_collective_seconds(forecast::CollectiveKind::all_reduce, bytes, network);
  });
  return samples / planned.step;
}

std::vector<std::string> point_overrides(const ScalingBench& bench, int64_t ranks) {
  std::vector<std::string> set = bench.set;
  set.push_back(text("training.global_batch=", batch_of(bench, ranks)));
  if (bench.job.training.steps > 0) {
    const int64_t divided = bench.mode == ScalingMode::weak ? ranks : 1;
    set.push_back(text("training.steps=", std::max<int64_t>(1, bench.job.training.steps / divided)));
  }
  if (bench.device == "cpu") set.push_back(text("training.threads=", bench.threads));
  return set;
}

ScalingRun read_scaling_run(const run::History& history, const Json& result) {
  ScalingRun run;
  run.hours = result.at("seconds").as_double() / 3600;
  run.steps = result.at("step").as_int();
  if (const Json* headline = result.find("headline")) run.headline = task::headline_from(*headline);
  const auto events = history.named("step");
  if (events.empty()) {
    throw Error(Blame::bug, "a run without a step in its journal", "see docs/formats/journal.md");
  }
  const int64_t warm = std::min((run.steps + 4) / 5, events.back().at("step").as_int() - 1);
  double samples = 0, seconds = 0, exposed = 0, steps = 0;
  for (const auto& event : events) {
    const auto covered = event.int_or("steps", 1);
    if (event.at("step").as_int() - covered < warm && &event != &events.back()) continue;
    samples += event.at("samples").as_double();
    seconds += event.at("seconds").as_double();
    exposed += event.double_or("communication", 0);
    steps += static_cast<double>(covered);
  }
  run.rate = samples / seconds;
  run.step_seconds = seconds / steps;
  run.exposed_seconds = exposed / steps;
  return run;
}

base::Path point_file(const base::Path& out, ScalingMode mode, int64_t ranks) {
  return out / text("point-", name_of(mode), "-", ranks, ".json");
}

ScalingPoint run_scaling_point(const ScalingBench& bench, int64_t ranks) {
  std::filesystem::create_directories(bench.out);
  ScalingPoint point{.ranks = ranks, .batch = batch_of(bench, ranks), .runs = {}};
  for (int64_t repeat = 1; repeat <= bench.repeats; ++repeat) {
    const auto folder = bench.out / text(name_of(bench.mode), "-", ranks, "-", repeat);
    const auto result = bench.out / text(name_of(bench.mode), "-", ranks, "-", repeat, ".json");
    std::filesystem::remove_all(folder);  // a point is measured from its first step on
    std::vector<std::string> words{"train",  bench.job_file,  "--run",    folder.string(), "--here",
                                   "--json", result.string(), "--device", bench.device};
    if (ranks > 1) words.insert(words.end(), {"--ranks", text(ranks)});
    for (const auto& one : point_overrides(bench, ranks)) words.insert(words.end(), {"--set", one});
    bench.say(text(ranks, ranks == 1 ? " rank" : " ranks", ", run ", repeat, " of ", bench.repeats));
    run_program(bench, words, text("the point of ", ranks, " ranks"));
    const auto history = run::read_journal(folder / "journal.jsonl");
    point.runs.push_back(read_scaling_run(history, base::read_json(result)));
    point.gradient_bytes = summed_bytes(bench.job.training, history.named("start").back().at("parameters").as_double());
  }
  const bool cpu = bench.device == "cpu";
  if (ranks > 1 && cpu && point.gradient_bytes > 0) {
    point.alone_seconds = time_alone(bench, ranks, {point.gradient_bytes})[0];
  }
  point.threads = cpu ? bench.threads : 0;
  point.machine = machine_name(cpu ? at::kCPU : at::kCUDA);
  base::write_json(point_file(bench.out, bench.mode, ranks), to_json(point));
  return point;
}

std::vector<ScalingPoint> collect_scaling_points(const base::Path& out, ScalingMode mode) {
  std::vector<ScalingPoint> points;
  if (std::filesystem::is_directory(out)) {
    for (const auto& entry : std::filesystem::directory_iterator(out)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(text("point-", name_of(mode), "-")) || !name.ends_with(".json")) continue;
      points.push_back(scaling_point_of(base::read_json(entry.path())));
    }
  }
  if (points.empty()) {
    throw Error(Blame::user, text("no ", name_of(mode), " point in ", out.string()),
                "run the points first: leave --collect out, or submit what --array wrote");
  }
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  const ScalingPoint* first = nullptr;  // that states its threads
  for (const auto& point : points) {
    if (point.threads == 0) continue;
    if (first == nullptr) first = &point;
    if (point.threads == first->threads) continue;
    throw Error(
        Blame::user,
        text(out.string(), ": the point of ", point.ranks, " ranks had ", point.threads, " threads a rank, that of ",
             first->ranks, " had ", first->threads, ": no efficiency follows from them"),
        text("measure them alike: --threads ", first->threads));
  }
  return points;
}

void keep_link(const base::Path& out, const forecast::Network& link) {
  Json document = Json::object();
  document["rate"] = link.intra_rate;
  document["latency"] = link.intra_latency;
  base::write_json(out / "link.json", document);
}

std::optional<forecast::Network> kept_link(const base::Path& out) {
  if (!std::filesystem::exists(out / "link.json")) return std::nullopt;
  const Json document = base::read_json(out / "link.json");
  return forecast::Network{
      .ranks = 2, .intra_rate = document.at("rate").as_double(), .intra_latency = document.at("latency").as_double()};
}

std::optional<forecast::Network> measure_link(const ScalingBench& bench, double gradient_bytes) {
  constexpr double kSmall = 4096;
  constexpr double kLarge = 1 << 20;  // less than that tells latency and rate apart on a quiet machine only
  constexpr int kAttempts = 3;        // others may be at work on it
  if (bench.device != "cpu" || gradient_bytes <= 0) return std::nullopt;
  const double large = std::max(gradient_bytes, kLarge);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto seconds = time_alone(bench, 2, {kSmall, large});
    if (seconds[1] > seconds[0]) return forecast::fitted_link(kSmall, seconds[0], large, seconds[1]);
  }
  return std::nullopt;
}

Json to_json(const ScalingPoint& point) {
  Json document = Json::object();
  document["ranks"] = point.ranks;
  document["batch"] = point.batch;
  document["gradient_bytes"] = point.gradient_bytes;
  document["alone_seconds"] = point.alone_seconds;
  if (point.threads > 0) document["threads"] = point.threads;
  document["machine"] = point.machine;
  Json runs = Json::array();
  for (const auto& run : point.runs) {
    Json one = Json::object();
    one["hours"] = run.hours;
    one["steps"] = run.steps;
    one["rate"] = run.rate;
    one["step_seconds"] = run.step_seconds;
    one["exposed_seconds"] = run.exposed_seconds;
    if (run.headline) one["headline"] = task::to_json(*run.headline);
    runs.push_back(std::move(one));
  }
  document["runs"] = std::move(runs);
  return document;
}

ScalingPoint scaling_point_of(const Json& document) {
  ScalingPoint point{.ranks = document.at("ranks").as_int(),
                     .batch = document.at("batch").as_int(),
                     .gradient_bytes = document.at("gradient_bytes").as_double(),
                     .alone_seconds = document.at("alone_seconds").as_double(),
                     .runs = {},
                     .threads = document.int_or("threads", 0),
                     .machine = document.string_or("machine", "")};
  for (const auto& one : document.at("runs").items()) {
    ScalingRun run{.hours = one.at("hours").as_double(),
                   .steps = one.at("steps").as_int(),
                   .rate = one.at("rate").as_double(),
                   .step_seconds = one.at("step_seconds").as_double(),
                   .exposed_seconds = one.at("exposed_seconds").as_double()};
    if (const Json* headline = one.find("headline")) run.headline = task::headline_from(*headline);
    point.runs.push_back(run);
  }
  return point;
}

}  // namespace lockstep::measure
