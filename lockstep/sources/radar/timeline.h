// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/sources/radar/radar_options.h"
#include "lockstep/sources/radar/scan.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {

// A frame of a timeline: its scans (of a composite one a site), by their numbers in the list.
struct FrameAt {
  double seconds = 0;
  std::vector<size_t> scans = {};
};

// Frames of a site, `minutes` apart, without a gap.
struct Run {
  std::string site;
  std::vector<FrameAt> frames;
};

struct Timeline {
  std::vector<Run> runs;
  std::vector<std::string> gaps;  // a sentence each
};
// Every scan falls on the nearest of the times that are `minutes` apart, counted from its site's first; of several the
// nearest one counts. A time without a scan (in a composite: without one of each site) is a gap, which ends a run.
Timeline make_timeline(const std::vector<Scan>& scans, const RadarOptions& options);

// A sequence of frames in a run.
struct Window {
  size_t run = 0, first = 0;
  Part part = Part::train;
};
struct Windows {
  std::vector<Window> all;
  int64_t across = 0;               // sequences left out: part of them lies in training, part in another part's time
  std::vector<Refused> short_runs;  // runs too short for one
};
// The latest of them are for test, those before for validation; no moment of one part is in another, whatever the site.
Windows cut_windows(const std::vector<Run>& runs, const RadarOptions& options);

}  // namespace lockstep::sources
