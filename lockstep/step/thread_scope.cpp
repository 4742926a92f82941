// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/thread_scope.h"

#include <ATen/Parallel.h>

namespace lockstep::step {

ThreadScope::ThreadScope(int64_t threads) : before_(at::get_num_threads()) {
  if (threads > 0 && threads != before_) at::set_num_threads(static_cast<int>(threads));
}

ThreadScope::~ThreadScope() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

}  // namespace lockstep::step
