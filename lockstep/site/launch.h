// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::site {

// What the launcher (mpirun, srun with a PMI) told this process through its environment.
struct Launch {
  bool has_company = false;  // it started more than one rank
  int64_t local_rank = 0;    // among those of this node
  int64_t local_size = 1;

  bool operator==(const Launch&) const = default;
};

Launch read_launch();

}  // namespace lockstep::site
