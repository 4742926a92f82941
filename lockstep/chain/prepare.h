// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/chain/chain.h"
#include "lockstep/chain/planned.h"
#include "lockstep/chain/script.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

// What the user asked for, with the documents read.
struct SubmitRequest {
  spec::Job job;
  spec::Machine machine;
  base::Path run;                      // absolute
  base::Path folder;                   // where the user stands, absolute
  std::string program;                 // this program, absolute
  std::string device;                  // "cpu", "cuda"; empty: cuda where the machine has GPUs
  std::vector<int64_t> nodes = {1};    // several: with earliest
  int64_t ranks_per_node = 0;          // 0: one a GPU, or one a processor package
  double walltime = 0;                 // of one job; 0: from job, machine and plan
  int64_t links = 0;                   // 0: by the plan
  int64_t max_links = 0;               // 0: twice the planned, at least 5 more; 50 without a plan
  int64_t patience = 3;                // links in a row that may bring no new step
  std::string hours;                   // run time by nodes, where plan cannot say
  std::vector<std::string> work = {};  // `predict ...` of a collection, `tune ...` of a study: there is no job then
  bool plan = true;
  bool earliest = false;
  bool dry_run = false;
};

// A shape that could be submitted, and when it would end.
struct Candidate {
  ScriptRequest script;
  PlannedShape planned;               // seconds 0: not known
  std::optional<double> start;        // Unix seconds, by the scheduler
  std::string refusal;                // why the scheduler would not start it
  std::optional<double> end() const;  // start + planned seconds
};

// Everything decided, nothing done.
struct Prepared {
  std::vector<Candidate> candidates;  // more than one with --earliest
  size_t chosen = 0;
  std::string script;  // of the chosen one
  ChainTerms terms;
  int64_t queue_now = 1;  // links to queue at once
  std::vector<std::string> notes;

  const Candidate& choice() const { return candidates[chosen]; }
};

// The machine that `word` names: a file, a row of the catalogue, or "here"; with the keys in `sites` overridden.
spec::Machine find_machine(const std::string& word, const std::vector<std::string>& sites,
                           const catalogue::Catalogue& catalogue);

// User errors: what check_site() says, a machine without a scheduler, with GPUs that no current CUDA drives, no
// walltime, one too short or longer than the machine's, more nodes than a job may have, more ranks than a node has GPUs
// or than the job can share its batch among, another job's run folder, a run whose chain still lives. Unless it is a
// dry run the scheduler's commands must be here; with `earliest` always.
Prepared prepare(const SubmitRequest& request, const catalogue::Catalogue& catalogue);

// What `lockstep predict` with these words keeps its state in: the run of such a chain. User error unless they name a
// --to FILE.jsonl, and for what each link would do again (--again) or `submit` decides (--ranks, --device).
base::Path collection_folder(const std::vector<std::string>& predict);

// Likewise `lockstep tune` with these words: the folder of its study. User error unless they name a study, and for what
// `submit` decides (--workers, --device) or what is no work for a queue (--best, --report, --measure).
base::Path study_folder(const std::vector<std::string>& tune);

// The one that ends first; user error with every refusal when none can be told an end.
size_t ends_first(const std::vector<Candidate>& candidates);

// The first key in which training would find this job another one than that of the run folder; empty: none, or the
// folder has no job yet.
std::string other_job(const base::Path& run, const spec::Job& job);

}  // namespace lockstep::chain
