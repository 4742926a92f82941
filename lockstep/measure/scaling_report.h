// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/advice/measured_table.h"
#include "lockstep/advice/paper.h"
#include "lockstep/measure/scaling.h"

namespace lockstep::measure {

// What was measured, and what follows from it for more ranks.
struct ScalingReport {
  ScalingBench bench;
  std::vector<ScalingPoint> points;           // ascending; the first is what efficiency is counted from
  std::optional<forecast::Network> link;      // between ranks of this machine
  std::vector<int64_t> simulated;             // ranks
  double inter_rate = 0;                      // bytes per second between the nodes of the simulation; 0: the link's
  std::vector<advice::MeasuredTable> beside;  // somebody's measured efficiencies, with their network
  std::string machine;
  std::string command;
};

// What is missing to simulate more ranks from these points; empty: nothing.
std::string why_not_simulated(const ScalingReport& report);
// The same step on more ranks than there are: forecast from the first point and the link or `inter_rate`.
std::vector<forecast::RankForecast> simulate_ranks(const ScalingReport& report);

// A published table's efficiencies beside the model's, from its own rate of one GPU and its network.
struct BesideRow {
  std::string table;
  int64_t gpus = 1;
  double measured = 0;
  double overlapped = 0;  // the model, communication behind backward
  double after = 0;       // the model, communication after backward
};
std::vector<BesideRow> beside_rows(const std::vector<advice::MeasuredTable>& tables);

// Why the measured points are not to be shown as they are: runs of a point that differ by more than a tenth, or an
// efficiency well above 1. Empty: nothing speaks against them. Stands in paper, plot and measured table.
std::string doubt_of(const ScalingReport& report);

advice::Paper scaling_paper(const ScalingReport& report);
std::string scaling_page(const ScalingReport& report);  // the paper with the plot, self-contained HTML
base::Json scaling_rows(const ScalingReport& report);   // of results/*.json
// The measured table that an application embeds: docs/formats/measured_table.md.
base::Json scaling_table(const ScalingReport& report);

// The line of Slurm's array that runs one point a task, and collects.
std::string array_script(const ScalingBench& bench, const std::vector<std::string>& words);

// Efficiency over ranks, both axes named, measured with its spread beside the ideal and the plan.
std::string scaling_svg(const ScalingReport& report);

}  // namespace lockstep::measure
