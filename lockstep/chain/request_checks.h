// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/chain/submit_request.h"

// What of a request is known to be wrong before anybody plans it or asks the scheduler: user errors.
namespace lockstep::chain {

// "cpu" or "cuda"; user error for GPUs that the machine does not have, or that no current CUDA drives.
std::string checked_device(const SubmitRequest& request, const catalogue::Catalogue& catalogue);

// The longest that a job may run, in seconds; user error where nobody says, and for one too short or too long.
double walltime_limit(const SubmitRequest& request);

void check_nodes(const SubmitRequest& request);

// User error for more than a node has GPUs.
int64_t choose_ranks_per_node(const SubmitRequest& request, const std::string& device);

// What training would refuse after the time in the queue. The plan of processors is of one rank, and a plan of GPUs
// speaks of options that are its own.
void check_ranks(const SubmitRequest& request, int64_t ranks_per_node);

// The folder is another job's, its chain lives, or a process works in it. Machine error when the scheduler does not say
// whether the chain lives.
void check_run(const SubmitRequest& request);

// The first key in which training would find this job another one than that of the run folder; empty: none, or the
// folder has no job yet.
std::string other_job(const base::Path& run, const spec::Job& job);

}  // namespace lockstep::chain
