// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal_tail.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/plan.h"
#include "lockstep/watching/run_log.h"
#include "lockstep/watching/slowness.h"

namespace lockstep::watching {

enum class Status { not_started, queued, starting, running, finished, stopped, broke_off, gone };
std::string words_for(Status status);  // "broke off"
// Whether nothing more will happen by itself.
bool is_over(Status status);
// How a program that waited for the run ends: 0 finished, 85 stopped in order, 3 otherwise.
int exit_code(Status status);

// One job of a chain, in words: "job 4711, link 2, node042: running".
struct LinkLine {
  std::string job, host, state;
  int64_t number = 0, from_step = 0, to_step = 0;
};

struct ChainView {
  std::vector<LinkLine> links;
  int64_t planned_links = 0;  // 0: not known
  int64_t waiting = 0;        // queued, and not begun
  std::string over;           // empty: it goes on
};

// What there is to see of a run now.
struct Snapshot {
  std::string folder, name, about;
  Status status = Status::not_started;
  std::string outcome;  // in words: why it stopped or broke off; empty: nothing to say
  int64_t step = 0, total_steps = 0;
  double epoch = kAbsent, epochs = kAbsent;
  double loss = kAbsent, figure = kAbsent;
  std::string figure_name, score_name;
  double score = kAbsent, best_score = kAbsent;  // of the headline
  bool score_is_share = false;
  int64_t best_step = 0;
  double rate = kAbsent;          // samples a second, of the last minute
  double step_seconds = kAbsent;  // likewise
  double elapsed = 0;             // of all steps, evaluations and saves
  double left = kAbsent;
  double memory = kAbsent, watts = kAbsent;
  double silent = 0;  // seconds since the journal last grew
  std::vector<double> losses, scores, rates;
  TimeSplit time;
  base::Json promise;  // as journalled; null: none
  Slowness slowness;
  std::optional<ChainView> chain;
  std::vector<std::string> warnings, lines;
};

// A run seen from outside, by its folder alone: any host that sees the folder will do, nothing is locked or written.
class RunWatch {
 public:
  explicit RunWatch(run::RunPaths paths);

  // Reads what is new. Errors as JournalTail::poll; a document that cannot be read is told as a warning.
  void poll();
  Snapshot look(double now) const;  // now: Unix seconds
  Status status() const;

  const RunLog& log() const { return log_; }
  const run::RunPaths& paths() const { return paths_; }
  std::vector<std::string> last_lines(size_t most) const;  // of the scheduler's output, or what training said
  std::optional<ChainView> chain() const;
  Slowness slowness() const;
  std::vector<std::string> warnings() const;

 private:
  void read_documents();

  run::RunPaths paths_;
  run::JournalTail tail_;
  RunLog log_;
  std::optional<spec::Job> job_;
  std::optional<spec::Plan> plan_;
  double documents_read_ = -1;  // start of the session that they were read for
  std::vector<std::string> trouble_;
};

base::Json to_json(const ChainView& chain);
base::Json to_json(const Snapshot& snapshot);

}  // namespace lockstep::watching
