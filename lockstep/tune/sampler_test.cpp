// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/sampler.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

Space space_of(const std::string& space) {
  return make_space(spec::parse_study(base::parse_json(base::text(R"({"space": )", space, "}"), "study.json")),
                    nullptr);
}

TEST(SamplerTest, AGridHasEveryCombinationOnce) {
  const Space space = space_of(R"({"o": {"choice": ["sgd", "adam"]}, "m": {"range": [0, 1], "points": 3,
      "when": {"o": "sgd"}}, "l": {"log": [0.01, 1], "points": 3}})");
  std::set<std::string> seen;
  int64_t number = 0;
  const SamplerOrder order{spec::StudySampler::grid};
  for (auto values = sample(order, space, {}, number); values; values = sample(order, space, {}, number)) {
    EXPECT_TRUE(seen.insert(base::join(to_sets(space, *values), " ")).second);
    ++number;
  }
  EXPECT_EQ(number, 3 * 3 + 3);
  EXPECT_TRUE(seen.contains("o=sgd m=0.5 l=0.1")) << *seen.begin();
  EXPECT_THROW(sample(order, space_of(R"({"x": {"range": [0, 1]}})"), {}, 0), base::Error);
}

TEST(SamplerTest, ATrialIsDrawnAlikeWhoeverDrawsIt) {
  const Space space = space_of(R"({"x": {"range": [0, 1]}, "n": {"range": [1, 5], "integer": true}})");
  for (const auto sampler : {spec::StudySampler::random, spec::StudySampler::sobol}) {
    const SamplerOrder order{sampler, 3};
    EXPECT_EQ(sample(order, space, {}, 5), sample(order, space, {}, 5));
    EXPECT_NE(sample(order, space, {}, 5), sample(order, space, {}, 6));
  }
}

}  // namespace
}  // namespace lockstep::tune
