// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/choice.h"

namespace lockstep::spec {

struct Section;  // fields.h

// The project document: what a computing centre is asked for. `lockstep plan --advise apply` makes the justification
// from it; project.cpp declares each field once. Empty texts become marked blanks in that document.

LOCKSTEP_CHOICE(GrantUnit, gpu_hour, node_hour, core_hour)
// What a statement of the applicant can be checked for.
//   fits, does_not_fit   on `gpus` GPUs of `on`
//   last_cuda            `value` is the last CUDA that drives `on`
//   loader_starves       the cores of a node cannot feed `gpus` GPUs of `on`
//   batch_is_split       each of `gpus` GPUs of `on` takes a share of the batch
//   not_checkable        only a person can know; the document says so
LOCKSTEP_CHOICE(ClaimKind, fits, does_not_fit, last_cuda, loader_starves, batch_is_split, not_checkable)

struct Claim {
  std::string says;
  ClaimKind kind = ClaimKind::not_checkable;
  std::string on;
  int64_t gpus = 1;
  std::string value;

  bool operator==(const Claim&) const = default;
};

// One line of the plan of work: a job, how often, and when.
struct Experiment {
  std::string name;
  std::string job;               // a job document, beside the project's
  std::vector<std::string> set;  // overrides of it
  int64_t runs = 1;              // different settings, each trained in full
  int64_t seeds = 1;             // repetitions of each
  int64_t tuning_runs = 0;       // further runs that look for settings
  double tuning_share = 1;       // of a full run that each of them takes
  int64_t from_month = 1;
  int64_t months = 1;

  bool operator==(const Experiment&) const = default;
};

struct Centre {
  std::string name;
  GrantUnit unit = GrantUnit::gpu_hour;
  int64_t period_months = 6;
  int64_t max_gpus = 0;  // of one job there; 0: not stated

  bool operator==(const Centre&) const = default;
};

struct Project {
  std::string name;
  std::string goal;
  std::string applicant;
  std::string supervisor;
  std::string experience;
  std::string funding;
  std::string data_rights;
  std::string support;
  Centre centre;
  std::string wanted;               // a GPU or machine: what is asked for
  int64_t gpus = 1;                 // of it, in a typical run
  std::vector<std::string> lesser;  // machines at hand, and why they will not do
  int64_t lesser_most = 4;          // GPUs of a lesser machine that one job may have
  double failure_margin = 0.15;     // share of the hours that is lost to failures and mistakes
  int64_t dataset_bytes = 0;
  int64_t dataset_files = 0;
  int64_t kept_bytes = 0;  // results beside checkpoints
  std::string scaling;     // what `lockstep bench scaling` measured, beside the project's document
  std::vector<Experiment> experiments;
  std::vector<Claim> claims;

  bool operator==(const Project&) const = default;
};

// As load_job, for project documents. The jobs' paths are made relative to the document's folder.
Project load_project(const base::Path& path);
Project parse_project(const base::Json& document);

base::Json to_json(const Project& project);

const Section& project_section();  // the table of its fields

}  // namespace lockstep::spec
