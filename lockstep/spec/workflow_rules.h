// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"
#include "lockstep/spec/workflow.h"

namespace lockstep::spec {

// What one stage demands of the others: outputs that nobody else writes, no cycle, names and placeholders that mean
// something. The document gives the places.
void check_workflow(const Workflow& workflow, const base::Json& document, Problems& problems);

// Of each stage those that it waits for, in the order of the document: who writes what it reads, and `after`.
std::vector<std::vector<size_t>> stage_needs(const Workflow& workflow);

// All stages, each behind those that it waits for, else as in the document. REQUIRES: check_workflow passed.
std::vector<size_t> stage_order(const Workflow& workflow);

// What it reads: `inputs`, and what it copies.
std::vector<std::string> stage_inputs(const Stage& stage);

// A path of a stage in one spelling: "data/raw" of "./data/raw/".
std::string stage_path(const std::string& path);

// What a stage that goes on keeps to go on from: the run folder of train, the records of predict, else `state`.
std::vector<std::string> state_paths(const Stage& stage);

// Of predict: the file of its records, or table (--to); empty: none.
std::string record_file(const Stage& stage);

// The words with {input}, {inputs}, {inputs[1]}, {output}, {outputs}, {outputs[1]}, {ranks}, {nodes}, {cores} and
// {gpus} put in; {inputs} alone in a word becomes as many words. User error for any other name in braces.
struct PlaceholderValues {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::pair<std::string, std::string>> numbers;  // "ranks" and the like
};
std::vector<std::string> fill_placeholders(const std::vector<std::string>& words, const PlaceholderValues& values);
PlaceholderValues placeholder_values(const Stage& stage);  // as in the document

}  // namespace lockstep::spec
