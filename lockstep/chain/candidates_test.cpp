// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/chain/small_request.h"

namespace lockstep::chain {
namespace {

TEST(CandidatesTest, ChoosesTheShapeThatEndsFirst) {
  std::vector<Candidate> candidates(3);
  candidates[0].start = 100;
  candidates[0].planned.seconds = 1000;
  candidates[1].start = 600;
  candidates[1].planned.seconds = 400;
  candidates[2].refusal = "Requested node configuration is not available";
  EXPECT_EQ(ends_first(candidates), 1u);
  candidates.erase(candidates.begin(), candidates.begin() + 2);
  EXPECT_THROW(ends_first(candidates), base::Error);
}

TEST(CandidatesTest, LeavesOutWhatThePlanRulesOut) {
  SubmitRequest request = request_on("leonardo");
  request.nodes = {1, 2};
  Planned planned;
  planned.shapes = {{.nodes = 1, .feasible = false, .why_not = "too little memory"}};
  const auto candidates = candidates_of(request, "cuda", planned, 3600);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].script.shape.nodes, 2);
  EXPECT_EQ(candidates[0].script.shape.walltime, 3600);  // nothing is planned of it
  request.nodes = {1};
  EXPECT_THROW(candidates_of(request, "cuda", planned, 3600), base::Error);
}

}  // namespace
}  // namespace lockstep::chain
