// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/explain_table.h"

#include <gtest/gtest.h>

namespace lockstep::advice {
namespace {

Advice explained(const std::string& members) {
  const auto document = base::parse_json(R"({"title": "t", "source": "s", )" + members + "}", "table.json");
  return explain_measured(parse_measured(document), catalogue::load_embedded());
}

TEST(ExplainTableTest, HasBothAmdahlSums) {
  const Advice advice = explained(R"("tables": [], "workflows": [{"title": "radar", "scaled": "training",
      "stated_share": 0.58, "phases": [{"name": "rest", "hours": 17}, {"name": "training", "hours": 24}],
      "speed_ups": [{"name": "slide", "gpus": 16, "efficiency": 0.994},
                    {"name": "consistent", "rate": 410.5, "from": 205.4}]}])");
  const auto& sums = advice.document.at("workflows").items().front().at("speed_ups").items();
  EXPECT_NEAR(sums[0].at("remaining").as_double(), 0.4565, 0.00005);
  EXPECT_NEAR(sums[1].at("remaining").as_double(), 0.710, 0.0005);
}

TEST(ExplainTableTest, OpensWithTheGpusThatNoCurrentCudaDrives) {
  const Advice advice = explained(R"("tables": [{"title": "x", "gpu": "k80", "rows": [{"gpus": 1, "rate": 2}]}])");
  EXPECT_EQ(std::get<Paper::Paragraph>(advice.paper.parts.front()).words,
            "k80: no current CUDA drives it (last: 11.8); planned only.");
}

}  // namespace
}  // namespace lockstep::advice
