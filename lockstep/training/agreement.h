// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/loader/collections.h"
#include "lockstep/training/train.h"

namespace lockstep::training {

// The name of this rank's machine.
std::string node_of(const TrainOptions& options);

// What all ranks of a run must have in common, as key -> value: the program, the data by number and fingerprint, the
// resolved job, and the options that every rank acts by. Keys of the job that belong to a node may differ: where data
// and starting weights lie, threads and memory.
base::Json terms_of(const spec::Job& job, const loader::Collections& collections,
                    const loader::Fingerprints& fingerprints, const TrainOptions& options);

// User error on every rank when one has other terms than rank 0: names the first such rank, its host, the first key
// that differs, and both values. Every rank calls it, with the same keys; a single rank has nothing to compare.
void check_terms(const base::Json& mine, const std::string& host, comm::Group& group);

// Rank 0's answer, on every rank. Every rank calls it.
bool answer_of_rank_0(bool mine, comm::Group& group);

}  // namespace lockstep::training
