// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/phase_norms.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::verbs {

TEST(PhaseNormsTest, APhaseThatFreezesItsNormsMayHavePassesOfOne) {
  const auto network = step::tiny::network();
  spec::Job job;
  job.data.image_size = step::tiny::kSize;
  job.training.global_batch = 8;
  EXPECT_THROW(check_norms_of_phases(job, network, at::kCPU, 25, 1), base::Error);
  job.training.phases = {{.freeze_norm = true}};
  EXPECT_NO_THROW(check_norms_of_phases(job, network, at::kCPU, 25, 1));
  job.training.phases.emplace_back();
  EXPECT_THROW(check_norms_of_phases(job, network, at::kCPU, 25, 1), base::Error);
}

}  // namespace lockstep::verbs
