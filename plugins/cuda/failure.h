// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace lockstep_cuda_internal {

std::string& last_failure();  // of the calling thread

// Runs `body`; an exception becomes -1 and words: none may cross the C interface.
template <class Body>
int guarded(Body body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    last_failure() = error.what();
  } catch (...) {
    last_failure() = "an unknown exception";
  }
  return -1;
}

}  // namespace lockstep_cuda_internal
