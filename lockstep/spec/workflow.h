// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"

namespace lockstep::spec {

// The workflow document: stages, what each reads and writes, and what it may use. workflow.cpp declares each field
// once, workflow_rules.h says what one stage demands of the others.

// What a stage may use, here and in a scheduler's queue.
struct StageResources {
  int64_t nodes = 1;
  int64_t ranks = 0;    // processes a node; 0: one, or one a GPU
  int64_t cores = 0;    // of each node; 0: one, of prep, train, eval and predict all
  int64_t gpus = 0;     // of each node
  int64_t memory = 0;   // bytes, of each node; 0: not asked for
  double walltime = 0;  // seconds, of one job; 0: the machine's limit
  int64_t jobs = 1;     // in a row, where one job is too short for it

  int64_t ranks_per_node() const { return ranks > 0 ? ranks : gpus > 0 ? gpus : 1; }
  int64_t all_ranks() const { return nodes * ranks_per_node(); }
  int64_t all_gpus() const { return nodes * gpus; }
  bool operator==(const StageResources&) const = default;
};

// One command of a workflow. Of copy ... command exactly one has words; {input}, {output}, {inputs[1]}, {ranks} and
// {cores} stand for what their names say.
struct Stage {
  std::string name;
  std::vector<std::string> copy = {};
  std::vector<std::string> prep = {};
  std::vector<std::string> train = {};
  std::vector<std::string> eval = {};
  std::vector<std::string> predict = {};
  std::vector<std::string> command = {};
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  std::vector<std::string> after = {};  // stages without a file in between
  bool restartable = false;             // of command; train is, and predict with records
  std::vector<std::string> state = {};  // what a restartable command goes on from
  int64_t retries = 0;
  double expected = 0;         // seconds, where it has not run yet
  Named<double> scaling = {};  // samples per second by number of GPUs
  StageResources resources;

  std::string kind() const;  // the key of its words: "train"
  const std::vector<std::string>& words() const;
  bool goes_on() const;  // started again, it goes on where it was ended: its outputs are written in place
  bool operator==(const Stage&) const = default;
};

struct Workflow {
  std::string name = "workflow";
  std::vector<Stage> stages = {};

  // User error when there is none of that name.
  size_t find(std::string_view stage) const;
  bool operator==(const Workflow&) const = default;
};

// As load_job, for workflow documents. Paths stay relative to the document's folder; load_workflow makes absolute ones
// that lie in it so.
Workflow load_workflow(const base::Path& path, const std::vector<std::string>& sets = {});
Workflow parse_workflow(const base::Json& document, const std::vector<std::string>& sets = {});

base::Json to_json(const Workflow& workflow);

const Section& workflow_section();  // the table of its fields

}  // namespace lockstep::spec
