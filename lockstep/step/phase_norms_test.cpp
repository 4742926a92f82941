// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/phase_norms.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {

TEST(PhaseNormsTest, APhaseThatFreezesItsNormsMayHavePassesOfOne) {
  const auto network = tiny::network();
  spec::Job job;
  job.data.image_size = tiny::kSize;
  job.training.global_batch = 8;
  EXPECT_THROW(check_norms_of_phases(job, network, at::kCPU, 25, 1), base::Error);
  job.training.phases.resize(1);
  job.training.phases[0].freeze_norm = true;
  EXPECT_NO_THROW(check_norms_of_phases(job, network, at::kCPU, 25, 1));
  job.training.phases.emplace_back();
  EXPECT_THROW(check_norms_of_phases(job, network, at::kCPU, 25, 1), base::Error);
}

}  // namespace lockstep::step
