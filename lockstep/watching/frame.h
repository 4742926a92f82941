// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/watching/run_watch.h"
#include "lockstep/watching/sparkline.h"

namespace lockstep::watching {

struct FrameOptions {
  int width = 80;
  int height = 24;  // lines; 0: as many as there are to tell
  Letters letters = Letters::unicode;
  bool colors = false;
};

// One screen about a run, or about several below each other. Lines are cut to the width, and left out from the least
// important on where the height does not do. What comes from files cannot move the cursor. Each line ends with a line
// end.
std::string draw_frame(const std::vector<Snapshot>& runs, const FrameOptions& options);

// One line for a log: "step 180/330  epoch 3.27  loss 0.312  203 samples/s  left 12:40".
std::string draw_line(const Snapshot& run);

}  // namespace lockstep::watching
