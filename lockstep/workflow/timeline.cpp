// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/spec/workflow_rules.h"

namespace lockstep::workflow {
namespace {

using base::Json;
using base::text;

std::vector<double> earliest_ends(const std::vector<std::vector<size_t>>& needs, const std::vector<double>& seconds) {
  std::vector<double> ends(needs.size(), -1);
  for (size_t round = 0; round < needs.size(); ++round) {  // no cycle: as many rounds as stages are enough
    for (size_t i = 0; i < needs.size(); ++i) {
      double start = 0;
      for (const size_t need : needs[i]) start = ends[need] < 0 || start < 0 ? -1 : std::max(start, ends[need]);
      if (start >= 0) ends[i] = start + seconds[i];
    }
  }
  return ends;
}

std::vector<double> seconds_of(const Timeline& timeline) {
  std::vector<double> all;
  all.reserve(timeline.stages.size());
  for (const auto& stage : timeline.stages) all.push_back(stage.seconds);
  return all;
}

// Throughput by number of GPUs.
std::map<int64_t, double> rates_of(const spec::Stage& stage) {
  std::map<int64_t, double> rates;
  for (const auto& [gpus, rate] : stage.scaling) rates[std::stoll(gpus)] = rate;
  return rates;
}

// Between and beyond what was measured: as much a GPU as with the nearest number of them.
double rate_at(const std::map<int64_t, double>& rates, int64_t gpus) {
  if (rates.empty()) return static_cast<double>(gpus);
  const auto nearest = std::min_element(rates.begin(), rates.end(), [&](const auto& a, const auto& b) {
    const auto distance = [&](int64_t n) {
      return std::abs(std::log(static_cast<double>(n) / static_cast<double>(gpus)));
    };
    return distance(a.first) < distance(b.first);
  });
  return nearest->second * static_cast<double>(gpus) / static_cast<double>(nearest->first);
}

// The stage that is spread over GPUs; none: the number of stages.
size_t choose_stage(const spec::Workflow& workflow, const Timeline& timeline) {
  size_t best = workflow.stages.size();
  bool scales = false;
  for (size_t i = 0; i < workflow.stages.size(); ++i) {
    const bool has_scaling = !workflow.stages[i].scaling.empty();
    if (timeline.stages[i].seconds <= 0 || (!has_scaling && (scales || workflow.stages[i].train.empty()))) continue;
    const bool better = best == workflow.stages.size() || (has_scaling && !scales) ||
                        timeline.stages[i].seconds > timeline.stages[best].seconds;
    if (better) best = i;
    scales |= has_scaling;
  }
  return best;
}

std::vector<int64_t> numbers_for(const std::map<int64_t, double>& rates, int64_t now) {
  std::vector<int64_t> all;
  for (const auto& [gpus, rate] : rates) {
    if (gpus != now) all.push_back(gpus);
  }
  for (const int64_t times : {2, 4, 8, 16}) {
    if (rates.empty()) all.push_back(now * times);
  }
  return all;
}

std::vector<Freed> freed_stages(const Timeline& timeline, const std::vector<std::vector<size_t>>& needs,
                                const std::vector<double>& seconds) {
  const double whole = whole_time(needs, seconds);
  std::vector<Freed> all;
  for (size_t i = 0; i < seconds.size(); ++i) {
    std::vector<double> without = seconds;
    without[i] = 0;
    const double left = whole > 0 ? whole_time(needs, without) / whole : 1;
    all.push_back({timeline.stages[i].name, left, left > 0 ? 1 / left : 0});
  }
  std::stable_sort(all.begin(), all.end(), [](const Freed& a, const Freed& b) { return a.left < b.left; });
  return all;
}

}  // namespace

double whole_time(const std::vector<std::vector<size_t>>& needs, const std::vector<double>& seconds) {
  const auto ends = earliest_ends(needs, seconds);
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

double amdahl_sum(double part, double speedup) {
  return part / speedup + (1 - part);
}

Timeline make_timeline(const spec::Workflow& workflow, const StatePaths& paths) {
  Timeline timeline;
  for (const auto& stage : workflow.stages) {
    TimelineStage one;
    one.name = stage.name;
    one.kind = stage.kind();
    one.seconds = stage.expected;
    if (const auto record = read_record(paths, stage.name)) {
      one.measured = true;
      one.seconds = record->seconds;
      one.began = record->began;
      one.ended = record->ended;
    }
    if (one.seconds <= 0) timeline.unknown.push_back(stage.name);
    timeline.stages.push_back(std::move(one));
  }
  const auto needs = spec::stage_needs(workflow);
  const auto seconds = seconds_of(timeline);
  const auto ends = earliest_ends(needs, seconds);
  timeline.whole = whole_time(needs, seconds);
  for (size_t i = 0; i < seconds.size(); ++i) {
    TimelineStage& stage = timeline.stages[i];
    stage.start = ends[i] - seconds[i];
    stage.share = timeline.whole > 0 ? seconds[i] / timeline.whole : 0;
    std::vector<double> without = seconds;
    without[i] = 0;
    stage.critical = seconds[i] > 0 && whole_time(needs, without) < timeline.whole;
  }
  return timeline;
}

Amdahl spread_stage(const spec::Workflow& workflow, const Timeline& timeline, const std::vector<int64_t>& gpus) {
  Amdahl amdahl;
  const auto needs = spec::stage_needs(workflow);
  std::vector<double> seconds = seconds_of(timeline);
  amdahl.freed = freed_stages(timeline, needs, seconds);
  const size_t index = choose_stage(workflow, timeline);
  if (timeline.whole <= 0) return amdahl;
  if (index < workflow.stages.size()) {
    const spec::Stage& stage = workflow.stages[index];
    const auto rates = rates_of(stage);
    const double own = seconds[index];
    amdahl.stage = stage.name;
    amdahl.gpus =
        std::max<int64_t>(1, stage.resources.all_gpus() > 0 ? stage.resources.all_gpus() : stage.resources.all_ranks());
    amdahl.ideal = rates.empty();
    amdahl.part = std::floor(100 * timeline.stages[index].share) / 100;
    for (const int64_t number : gpus.empty() ? numbers_for(rates, amdahl.gpus) : gpus) {
      Spread spread;
      spread.gpus = number;
      spread.speedup = rate_at(rates, number) / rate_at(rates, amdahl.gpus);
      spread.extrapolated = !rates.empty() && (!rates.contains(number) || !rates.contains(amdahl.gpus));
      seconds[index] = own / spread.speedup;
      spread.seconds = whole_time(needs, seconds);
      spread.left = spread.seconds / timeline.whole;
      const double from_one = rate_at(rates, number) / rate_at(rates, 1);
      seconds[index] = own / from_one;
      spread.as_if_one_gpu = whole_time(needs, seconds) / timeline.whole;
      amdahl.rounded.push_back(amdahl_sum(amdahl.part, spread.speedup));
      amdahl.rounded_as_if_one.push_back(amdahl_sum(amdahl.part, from_one));
      amdahl.spreads.push_back(spread);
    }
    seconds[index] = own;
    for (const auto& spread : amdahl.spreads) seconds[index] = std::min(seconds[index], own / spread.speedup);
  }
  const auto then = freed_stages(timeline, needs, seconds);
  if (!then.empty() && then.front().left < 1) {
    amdahl.next = then.front().stage;
    amdahl.next_left = then.front().left;
  }
  return amdahl;
}

Json to_json(const Timeline& timeline) {
  Json all = Json::object();
  all["whole_seconds"] = timeline.whole;
  Json& rows = all["stages"] = Json::array();
  for (const auto& stage : timeline.stages) {
    Json row = Json::object();
    row["name"] = stage.name;
    row["kind"] = stage.kind;
    row["seconds"] = stage.seconds;
    row["measured"] = stage.measured;
    row["start"] = stage.start;
    row["share"] = stage.share;
    row["critical"] = stage.critical;
    row["began"] = stage.began;
    row["ended"] = stage.ended;
    rows.push_back(std::move(row));
  }
  all["unknown"] = Json::array_of(timeline.unknown);
  return all;
}

Json to_json(const Amdahl& amdahl) {
  Json all = Json::object();
  all["stage"] = amdahl.stage;
  all["gpus"] = amdahl.gpus;
  all["ideal"] = amdahl.ideal;
  all["part"] = amdahl.part;
  Json& rows = all["spreads"] = Json::array();
  for (size_t i = 0; i < amdahl.spreads.size(); ++i) {
    const Spread& spread = amdahl.spreads[i];
    Json row = Json::object();
    row["gpus"] = spread.gpus;
    row["speedup"] = spread.speedup;
    row["seconds"] = spread.seconds;
    row["left"] = spread.left;
    row["as_if_one_gpu"] = spread.as_if_one_gpu;
    row["rounded"] = amdahl.rounded[i];
    row["rounded_as_if_one_gpu"] = amdahl.rounded_as_if_one[i];
    row["extrapolated"] = spread.extrapolated;
    rows.push_back(std::move(row));
  }
  Json& freed = all["freed"] = Json::array();
  for (const auto& one : amdahl.freed) {
    Json row = Json::object();
    row["stage"] = one.stage;
    row["left"] = one.left;
    row["speedup"] = one.speedup;
    freed.push_back(std::move(row));
  }
  all["next"] = amdahl.next;
  all["next_left"] = amdahl.next_left;
  return all;
}

std::string to_text(const Timeline& timeline) {
  constexpr double kWidth = 40;
  base::Table table({{"stage"}, {"time", base::Align::right}, {"share", base::Align::right}, {"timeline"}, {""}});
  for (const auto& stage : timeline.stages) {
    std::string bar;
    if (timeline.whole > 0 && stage.seconds > 0) {
      const auto from = static_cast<int64_t>(std::floor(kWidth * stage.start / timeline.whole));
      const auto to = static_cast<int64_t>(std::ceil(kWidth * stage.end() / timeline.whole));
      bar = std::string(static_cast<size_t>(from), ' ') +
            std::string(static_cast<size_t>(std::max<int64_t>(1, to - from)), stage.measured ? '#' : '-');
    }
    table.add({stage.name, stage.seconds > 0 ? base::format_duration(stage.seconds) : "?",
               stage.seconds > 0 ? base::percent(stage.share) : "", bar,
               stage.seconds <= 0 ? "time not known"
               : stage.measured   ? ""
                                  : "expected"});
  }
  return table.to_text() + text("  the whole: ", base::format_duration(timeline.whole),
                                timeline.unknown.empty() ? "" : text(", without ", base::join(timeline.unknown, ", ")),
                                "\n");
}

std::string to_text(const Amdahl& amdahl) {
  std::string words;
  if (!amdahl.spreads.empty()) {
    base::Table table({{"GPUs", base::Align::right},
                       {amdahl.stage, base::Align::right},
                       {"the whole", base::Align::right},
                       {"left", base::Align::right},
                       {text("if ", amdahl.gpus, " were 1"), base::Align::right},
                       {text("with ", base::percent(amdahl.part, 0)), base::Align::right},
                       {"likewise, if 1", base::Align::right},
                       {""}});
    for (size_t i = 0; i < amdahl.spreads.size(); ++i) {
      const Spread& spread = amdahl.spreads[i];
      table.add({text(spread.gpus), text(base::fixed(spread.speedup, 2), "x"), base::format_duration(spread.seconds),
                 base::percent(spread.left, 2), base::percent(spread.as_if_one_gpu, 2),
                 base::percent(amdahl.rounded[i], 2), base::percent(amdahl.rounded_as_if_one[i], 2),
                 amdahl.ideal          ? "if it scaled without loss"
                 : spread.extrapolated ? "not measured"
                                       : ""});
    }
    words += text("Amdahl: ", amdahl.stage, " on other numbers of GPUs than the ", amdahl.gpus,
                  " that its time is of\n", table.to_text());
  }
  for (const auto& freed : amdahl.freed) {
    if (freed.stage != amdahl.stage || freed.left >= 1) continue;
    words += text("  with ", freed.stage, " for nothing ", base::percent(freed.left), " would be left",
                  freed.left > 0 ? text(" (", base::fixed(freed.speedup, 2), "x)") : "", "\n");
  }
  if (!amdahl.next.empty()) {
    words += text(
        "  speed up next: ", amdahl.next,
        amdahl.next_left > 0 ? text("; ", base::percent(amdahl.next_left), " would be left then without it\n") : "\n");
  }
  return words;
}

}  // namespace lockstep::workflow
