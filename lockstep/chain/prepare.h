// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/chain/candidates.h"
#include "lockstep/chain/chain.h"
#include "lockstep/chain/submit_request.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

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

}  // namespace lockstep::chain
