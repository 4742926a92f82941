// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/post.h"

#include <cstdlib>

#include "lockstep/comm/call_record.h"
#include "lockstep/site/launch.h"

namespace lockstep::ranks {

std::optional<Post> my_post(const base::Path& run) {
  const char* world = std::getenv(kWorldVariable);
  if (!world) return std::nullopt;
  const char* beats = std::getenv(kBeatsVariable);
  const base::Path folder = beats ? base::Path(beats) : run;
  const int64_t rank = site::read_launch().rank;
  return Post{world, rank, run::beat_path(folder, rank), run::world_path(folder)};
}

CallsWatched::CallsWatched(run::Activity& activity, const comm::Group& group) : activity_(activity) {
  const auto* teller = dynamic_cast<const comm::TellsCalls*>(&group);
  if (!teller) return;
  activity.watch_calls([teller] {
    const comm::CallState calls = teller->calls();
    return run::Calls{calls.waiting, calls.started, calls.answered, calls.failed, calls.whole};
  });
}

}  // namespace lockstep::ranks
