// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/file.h"

namespace lockstep::ranks {

// Which supervised start of the ranks this process belongs to, and as which rank.
struct Post {
  std::string world;
  int64_t rank = 0;
  base::Path beat;    // the file of this rank's beats
  base::Path latest;  // names the start that counts now; a rank of another one is ended. Empty: not asked
};

// Splits this process in two: the rank goes on (nothing is returned), and its keeper stays behind, passes signals on
// and writes into the beat how the rank ended or that it was stopped: what a rank killed with SIGKILL cannot say
// itself. The keeper returns the exit code for the launcher, 128 + the signal for a rank that was killed. Neither
// outlives the other, nor the launcher, nor by more than a second the start of other ranks in their place. REQUIRES: no
// other thread yet.
std::optional<int> keep_rank(const Post& post);

}  // namespace lockstep::ranks
