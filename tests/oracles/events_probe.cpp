// SPDX-License-Identifier: Apache-2.0
// events_probe FOLDER: writes the event file that tensorboard_events.py expects.
#include <cmath>
#include <cstdio>

#include "lockstep/run/events.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: events_probe FOLDER\n"), 2;
  lockstep::run::EventWriter writer(argv[1]);
  for (int64_t step = 1; step <= 1000; ++step) writer.scalar("train/loss", step, std::exp(-0.001 * step));
  writer.scalar("validate/top1", int64_t{1} << 40, 0.25);
  writer.scalar("caf\xC3\xA9", 0, -1e30);
}
