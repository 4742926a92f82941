// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using base::text;

// By number of the time step: of each site the scan nearest to it.
using Slots = std::map<int64_t, std::map<std::string, size_t>>;

Slots slots_of(const std::vector<Scan>& scans, const std::vector<size_t>& chosen, double first, double step) {
  Slots slots;
  const auto off = [&](size_t i, int64_t slot) {
    return std::abs(scans[i].seconds - first - static_cast<double>(slot) * step);
  };
  for (const size_t i : chosen) {
    const int64_t slot = std::llround((scans[i].seconds - first) / step);
    const auto [at, is_new] = slots[slot].try_emplace(scans[i].site, i);
    if (!is_new && off(i, slot) < off(at->second, slot)) at->second = i;
  }
  return slots;
}

void add_runs(const std::vector<Scan>& scans, const std::vector<size_t>& chosen, const std::string& name,
              const RadarOptions& options, Timeline& timeline) {
  const double step = options.minutes * 60;
  double first = scans[chosen.front()].seconds;
  std::set<std::string> sites;
  for (const size_t i : chosen) {
    first = std::min(first, scans[i].seconds);
    sites.insert(scans[i].site);
  }
  Run run{name, {}};
  int64_t last = 0;
  for (const auto& [slot, by_site] : slots_of(scans, chosen, first, step)) {
    if (by_site.size() < sites.size()) {
      timeline.gaps.push_back(text(name, ": ", by_site.size(), " of ", sites.size(), " sites at ",
                                   moment_text(first + static_cast<double>(slot) * step)));
      continue;
    }
    if (!run.frames.empty() && slot != last + 1) {
      timeline.gaps.push_back(text(
          name, ": no frame for ", std::llround(static_cast<double>(slot - last) * options.minutes), " minutes after ",
          moment_text(run.frames.back().seconds), " (frames are ", options.minutes, " minutes apart)"));
      timeline.runs.push_back(std::move(run));
      run = {name, {}};
    }
    FrameAt frame;
    for (const auto& [site, number] : by_site) frame.scans.push_back(number);
    frame.seconds = scans[frame.scans.front()].seconds;
    run.frames.push_back(std::move(frame));
    last = slot;
  }
  if (!run.frames.empty()) timeline.runs.push_back(std::move(run));
}

}  // namespace

Timeline make_timeline(const std::vector<Scan>& scans, const RadarOptions& options) {
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < scans.size(); ++i) groups[options.composite ? "composite" : scans[i].site].push_back(i);
  Timeline timeline;
  for (const auto& [name, chosen] : groups) add_runs(scans, chosen, name, options, timeline);
  return timeline;
}

Windows cut_windows(const std::vector<Run>& runs, const RadarOptions& options) {
  const auto length = static_cast<size_t>(options.frames);
  const auto stride = static_cast<size_t>(options.stride > 0 ? options.stride : options.frames);
  Windows windows;
  std::vector<Window> all;
  for (size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].frames.size() < length) {
      windows.short_runs.push_back({text(runs[r].site, " ", moment_text(runs[r].frames.front().seconds)),
                                    text(runs[r].frames.size(), " frames in a row, a sequence has ", length)});
    }
    for (size_t first = 0; first + length <= runs[r].frames.size(); first += stride) all.push_back({r, first});
  }
  const auto start_of = [&](const Window& window) { return runs[window.run].frames[window.first].seconds; };
  const auto end_of = [&](const Window& window) { return runs[window.run].frames[window.first + length - 1].seconds; };
  std::vector<double> starts;
  starts.reserve(all.size());
  for (const Window& window : all) starts.push_back(start_of(window));
  std::sort(starts.begin(), starts.end());
  const auto border = [&](double share) {  // where the latest `share` of the sequences begin
    const auto count = static_cast<size_t>(std::llround(share * static_cast<double>(starts.size())));
    return count == 0 ? INFINITY : starts[starts.size() - std::min(count, starts.size())];
  };
  const double test = border(options.test), validate = border(options.test + options.validate);
  for (Window& window : all) {
    const double begin = start_of(window), end = end_of(window);
    if ((begin < validate && end >= validate) || (begin < test && end >= test)) {
      ++windows.across;
      continue;
    }
    window.part = begin >= test ? Part::test : begin >= validate ? Part::validate : Part::train;
    windows.all.push_back(window);
  }
  return windows;
}

}  // namespace lockstep::sources
