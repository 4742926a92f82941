// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/bench_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/time.h"

namespace lockstep::measure {
namespace {

// In a process of its own: libtorch cannot be told of a simulated GPU after it was used without one.
void trace_both() {
  Published row;
  row.zoo = "resnet18";
  row.precision = "fp32";
  row.batch = 4;
  row.image_size = 64;
  row.gpus = 1;
  row.layout = forecast::Layout::channels_last;
  const auto published = trace_published(row);
  const auto cell =
      trace_cell(parse_cell(base::parse_json(
                     R"({"model": "resnet18", "batch": 4, "image_size": 64, "precision": "fp32", "optimizer": "sgd"})",
                     "cell.json")),
                 catalogue::load_embedded().gpu("h200"));
  const auto one = forecast::last_step_operators(published);
  const auto other = forecast::last_step_operators(cell);
  bool alike = one.size() == other.size();
  for (size_t i = 0; alike && i < one.size(); ++i) alike = *one[i] == *other[i];
  row.gpus = 8;
  bool reduces = false;
  for (const auto& event : trace_published(row).events) {
    reduces = reduces || event.kind == forecast::EventKind::collective;
  }
  std::exit(alike && reduces && !one.empty() ? 0 : 1);
}

TEST(BenchTraceDeathTest, TracesAPublishedRowAndACellAlike) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(trace_both(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep::measure
