// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/last_words.h"

#include <cstdio>
#include <thread>

#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {
namespace {

base::Error of_rank(const base::Error& error, int64_t rank) {
  if (rank == 0) return error;
  return {error.blame(), base::text("rank ", rank, " on ", host_name(), ": ", error.what()), error.fix()};
}

}  // namespace

void tell_last_words(const base::Error& error, int64_t rank, std::chrono::milliseconds turn) {
  if (rank != 0) std::this_thread::sleep_for(turn);
  std::fprintf(stderr, "%s\n", of_rank(error, rank).message().c_str());
}

}  // namespace lockstep::site
