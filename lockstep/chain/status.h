// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/chain/chain.h"
#include "lockstep/site/batch.h"

namespace lockstep::chain {

// What the scheduler said about the jobs of a chain, and when.
struct QueueView {
  double asked = 0;       // Unix seconds
  bool answered = false;  // false: it gave no answer then
  std::vector<site::BatchJob> jobs;
  std::vector<std::string> gone;  // jobs that were in the queue no more then, and had never said that they began
  std::string gone_said;          // how the last of them ended, in the scheduler's words; empty: it does not say
  bool gone_by_hand = false;      // somebody took it out of the queue
  std::string last_ended;         // the link that is over and was asked about
  std::string memory_killed;      // that its memory limit ended it, in the scheduler's words; empty: it did not
  int64_t signal = 0;             // that ended its shell, as PBS says; 0: none
};

// Schedulers suffer from people who ask all the time: this one is asked once a minute at most, however often and by how
// many processes this is called; the answer is kept in RUN/queue.json.
constexpr double kAskEverySeconds = 60;
QueueView view_queue(const base::Path& run, const Chain& chain, double now);

struct ChainStatus {
  base::Path run;
  Chain chain;
  QueueView queue;
  int64_t step = 0;         // saved
  int64_t total_steps = 0;  // 0: not known yet
};
ChainStatus read_status(const base::Path& run, double now);
std::string to_text(const ChainStatus& status, double now);
base::Json to_json(const ChainStatus& status, double now);

// Ends a chain: notes it first, so that no link goes on, then takes its jobs out of the queue, waiting ones before the
// running one, which would otherwise start them. Returns the jobs cancelled. Machine error when the scheduler refuses.
std::vector<std::string> cancel_chain(const base::Path& run);

}  // namespace lockstep::chain
