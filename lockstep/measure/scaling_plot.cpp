// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/scaling.h"
#include "lockstep/measure/scaling_report.h"

namespace lockstep::measure {
namespace {

using base::text;
using Line = std::vector<std::pair<int64_t, double>>;  // ranks, efficiency

// Ranks in powers of two to the right, efficiency upwards: from 0 to 1.1, or to just above the highest point.
class Plot {
 public:
  Plot(int64_t most, double highest)
      : doublings_(std::max(1.0, std::log2(static_cast<double>(most)))), top_(std::max(1.1, 1.05 * highest)) {}

  std::string x(int64_t ranks) const {
    return base::fixed(kLeft + kWidth * std::log2(static_cast<double>(ranks)) / doublings_, 1);
  }
  std::string y(double efficiency) const { return base::fixed(kTop + kHeight * (1 - efficiency / top_), 1); }
  // The lines to read it by, six at most above 0.
  std::vector<double> levels() const {
    double gap = .25;
    while (top_ / gap > 7) gap *= 2;
    std::vector<double> all;
    for (double level = 0; level <= top_; level += gap) all.push_back(level);
    return all;
  }
  std::string label(const std::string& at_x, const std::string& at_y, const char* anchor,
                    const std::string& words) const {
    return text("<text x=\"", at_x, "\" y=\"", at_y, "\" text-anchor=\"", anchor, "\">", words, "</text>\n");
  }
  std::string line(const Line& points, const char* style) const {
    std::string path;
    for (const auto& [ranks, efficiency] : points) path += text(path.empty() ? "" : " ", x(ranks), ",", y(efficiency));
    return text("<polyline fill=\"none\" points=\"", path, "\" ", style, "/>\n");
  }

  static constexpr double kLeft = 60, kTop = 20, kWidth = 520, kHeight = 260;

 private:
  double doublings_;
  double top_;
};

double highest_of(const std::vector<Line>& lines) {
  double highest = 0;
  for (const auto& line : lines) {
    for (const auto& [ranks, efficiency] : line) highest = std::max(highest, efficiency);
  }
  return highest;
}

}  // namespace

std::string scaling_svg(const ScalingReport& report) {
  const ScalingPoint& first = report.points[0];
  Line measured, upper, planned, further;
  int64_t most = report.points.back().ranks;
  for (const auto& point : report.points) {
    const Efficiency efficiency = efficiency_of(point, first);
    measured.emplace_back(point.ranks, efficiency.value);
    upper.emplace_back(point.ranks, efficiency.high);
    if (point.ranks == first.ranks) planned.emplace_back(point.ranks, 1.0);
    if (const auto rate = planned_rate(point, first, report.link)) {
      planned.emplace_back(point.ranks, forecast::scaling_efficiency(*rate, point.ranks, first.rate(), first.ranks));
    }
  }
  for (const auto& one : simulate_ranks(report)) {
    further.emplace_back(one.ranks, one.efficiency);
    most = std::max(most, one.ranks);
  }
  const Plot plot(most, highest_of({measured, upper, planned, further}));
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 620 340\" width=\"620\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"12\" aria-label=\"efficiency over ranks\">\n";
  for (const double level : plot.levels()) {
    svg += text("<line x1=\"60\" x2=\"580\" y1=\"", plot.y(level), "\" y2=\"", plot.y(level), "\" stroke=\"#ccc\"/>\n",
                plot.label("54", plot.y(level), "end", base::fixed(level, 2)));
  }
  for (int64_t ranks = 1; ranks <= most; ranks *= 2) svg += plot.label(plot.x(ranks), "298", "middle", text(ranks));
  svg += plot.label("320", "318", "middle", "ranks");
  svg +=
      plot.label("64", "14", "start", "efficiency: measured (dots, with spread), planned (dashed), simulated (dotted)");
  if (const std::string doubt = doubt_of(report); !doubt.empty()) svg += plot.label("310", "334", "middle", doubt);
  for (const auto& point : report.points) {
    const Efficiency efficiency = efficiency_of(point, first);
    svg += text("<line x1=\"", plot.x(point.ranks), "\" x2=\"", plot.x(point.ranks), "\" y1=\"", plot.y(efficiency.low),
                "\" y2=\"", plot.y(efficiency.high), "\" stroke=\"#1f4e79\" stroke-width=\"2\"/>\n<circle cx=\"",
                plot.x(point.ranks), "\" cy=\"", plot.y(efficiency.value), "\" r=\"4\" fill=\"#1f4e79\"/>\n");
  }
  svg += plot.line(measured, "stroke=\"#1f4e79\" stroke-width=\"2\"");
  if (planned.size() > 1) svg += plot.line(planned, "stroke=\"#b45f06\" stroke-width=\"2\" stroke-dasharray=\"6 4\"");
  if (!further.empty()) svg += plot.line(further, "stroke=\"#38761d\" stroke-width=\"2\" stroke-dasharray=\"2 4\"");
  return svg + "</svg>\n";
}

}  // namespace lockstep::measure
