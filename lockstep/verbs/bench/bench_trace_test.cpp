// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/bench/bench_trace.h"

#include <gtest/gtest.h>

#include "lockstep/forecast/time.h"

namespace lockstep::verbs {
namespace {

TEST(BenchTraceTest, TracesAPublishedRowAndACellAlike) {
  Published row;
  row.zoo = "resnet18";
  row.precision = "fp32";
  row.batch = 4;
  row.image_size = 64;
  row.gpus = 1;
  row.layout = forecast::Layout::channels_last;
  const auto published = trace_published(row);
  const auto cell = trace_cell(parse_cell(base::parse_json(
      R"({"model": "resnet18", "batch": 4, "image_size": 64, "precision": "fp32", "optimizer": "sgd"})", "cell.json")));
  const auto one = forecast::last_step_operators(published);
  const auto other = forecast::last_step_operators(cell);
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(*one[i], *other[i]);
  row.gpus = 8;
  bool reduces = false;
  for (const auto& event : trace_published(row).events) {
    reduces = reduces || event.kind == forecast::EventKind::collective;
  }
  EXPECT_TRUE(reduces);
}

}  // namespace
}  // namespace lockstep::verbs
