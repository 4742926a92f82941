// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/run/journal.h"
#include "lockstep/site/batch.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

// The exit code of a link that stopped in order. Not 85: Slurm requeues a job that ends so where the site's RequeueExit
// has it, also with --no-requeue (seen on 22.05), and then job and successor would both go on.
constexpr int kExitNextLink = 75;

// What a chain was submitted with.
struct ChainTerms {
  std::string name;  // of its jobs in the queue
  site::SchedulerName scheduler = site::SchedulerName::slurm;
  spec::SubmitFrom submit_from = spec::SubmitFrom::job;
  double walltime = 0;                   // seconds of one job; 0: not noted
  int64_t planned_links = 0;             // by the plan; 0: not known
  int64_t max_links = 0;                 // the cap
  int64_t patience = 0;                  // links in a row that may bring no new step
  std::optional<double> promised_start;  // Unix seconds, by the scheduler
  std::optional<double> promised_end;    // with the planned length of all links

  bool operator==(const ChainTerms&) const = default;
};

// One job of a chain that has begun.
struct ChainLink {
  std::string job;
  int64_t number = 0;       // 1 = the first
  std::string host;         // of its batch shell, at its last start
  int64_t starts = 0;       // more than one: the scheduler started this job again
  double begun = 0;         // Unix seconds, of its last start
  double ended = 0;         // 0: it runs, or was killed
  int code = -1;            // exit code of the training
  int64_t step_before = 0;  // saved when it first began
  int64_t step_after = 0;   // saved when it ended

  bool operator==(const ChainLink&) const = default;
};

// The state of a chain, read from RUN/chain.jsonl (docs/formats/chain.md).
struct Chain {
  ChainTerms terms;
  std::vector<std::string> queued;     // every job that was ever queued for it
  std::vector<std::string> followed;   // the jobs that have queued a successor
  std::vector<ChainLink> links;        // those that have begun, in order
  std::string over;                    // "", or why it is: done, failed, cap, no progress, memory, cancelled
  std::string closing_words;           // what there is to say about that
  double submitted = 0;                // Unix seconds
  double closed = 0;                   // 0: not over
  std::vector<std::string> bad_hosts;  // on which ranks failed again and again, the newest last
  std::string first_refusal;           // what the scheduler said when a link could not queue its successor

  const ChainLink* find(const std::string& job) const;
  // Links in a row, the last ones, that ended or were killed without a step beyond all before them; `step` is saved
  // now.
  int64_t idle_links(int64_t step) const;
};

base::Path chain_file(const base::Path& run);
bool has_chain(const base::Path& run);
// User error when the run has none.
Chain read_chain(const base::Path& run);
// From the events of a journal file: each event `chain` starts over.
Chain rebuild_chain(const run::History& history);

// A file of the run's folder, open for reading until the end of the scope.
class OpenFile {
 public:
  explicit OpenFile(const base::Path& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int get() const { return descriptor_; }
  // Whether this user alone can write to it: whoever else could would choose what is queued and cancelled as this user.
  bool is_ours_alone() const;

 private:
  int descriptor_;
};

// Appends to RUN/chain.jsonl.
class ChainRecord {
 public:
  explicit ChainRecord(const base::Path& run) : path_(chain_file(run)), journal_(path_) {}

  void open(const ChainTerms& terms);
  void queued(const std::string& job, const std::string& by);  // by: the job that queued it; empty: the user
  void refused(const std::string& job, const std::string& words);
  void exclude(const std::string& job, const std::vector<std::string>& hosts);
  void begin(const std::string& job, int64_t number, int64_t step, const std::string& host);
  void finish(const std::string& job, int code, int64_t step);
  void close(const std::string& why, int64_t step, const ChainTerms& terms, const std::string& words = "");

 private:
  void append(const char* event, const base::Json& fields);
  base::Path path_;
  run::Journal journal_;
};

// What the scheduler itself wrote into the output of a job: of PBS, which has a file of its own for it, all lines; of
// Slurm, whose words stand between those of the training, the last line of its own. Empty: nothing, or none is there
// yet.
std::string scheduler_words(const base::Path& run, const ChainTerms& terms, const std::string& job);
// Whether the memory limit ended that job, in the words of its output or of the scheduler (how_ended); nothing: it did
// not, as far as they say.
std::optional<std::string> memory_kill(const base::Path& run, const ChainTerms& terms, const std::string& job,
                                       const site::JobEnd& end);

// Where the scheduler puts what that job prints.
base::Path link_output(const base::Path& run, const ChainTerms& terms, const std::string& job);

// The last event of that name in the run's journal; nothing when there is none.
std::optional<base::Json> last_event(const base::Path& run, std::string_view name);
// The last step that was saved; 0: none. By the journal and by the names of the checkpoints: a job that is killed in
// the step behind a save has not told of it.
int64_t saved_step(const base::Path& run);

// That the supervisor started the ranks no more (the journal's event gave_up), where it did so after `since`.
struct GivenUp {
  std::string why;                 // the kind of the fault: "hung"
  std::vector<std::string> hosts;  // that are to blame, as the scheduler calls them; empty: not known
};
std::optional<GivenUp> given_up(const base::Path& run, double since);

}  // namespace lockstep::chain
