// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {

// The plan document (docs/formats/plan.md): `lockstep plan --json` writes it, `train --plan` and `submit` read it.
// Plain values; plan.cpp declares each field once. Bytes, seconds, joules. An absent value is not known; `why` or
// `notes` say what would have to be known.

struct PlanBlock {
  int64_t bytes = 0;
  std::string memory_class;
  std::string born_by;

  bool operator==(const PlanBlock&) const = default;
};

struct PlanMemory {  // of one GPU; on processors of the process
  int64_t peak_reserved = 0;
  int64_t peak_allocated = 0;
  int64_t cold_peak_reserved = 0;
  int64_t fragmentation = 0;
  int64_t context = 0;
  int64_t nccl = 0;
  int64_t total = 0;
  int64_t capacity = 0;
  Named<int64_t> by_class;
  std::string moment;
  std::vector<PlanBlock> largest;
  std::optional<Named<std::vector<int64_t>>> curve;  // "event", and behind it the bytes of each class

  bool operator==(const PlanMemory&) const = default;
};

struct PlanHostMemory {  // of one node
  int64_t total = 0;
  int64_t processes = 0;
  int64_t pinned = 0;
  int64_t loader = 0;
  int64_t features = 0;
  int64_t staged = 0;
  int64_t checkpoint = 0;

  bool operator==(const PlanHostMemory&) const = default;
};

struct PlanStep {  // seconds
  double value = 0;
  double low = 0;
  double high = 0;

  bool operator==(const PlanStep&) const = default;
};

struct PlanPhase {
  std::string name;
  int64_t memory = 0;
  std::optional<PlanStep> step_seconds;
  double features = 0;  // seconds until the cache is filled

  bool operator==(const PlanPhase&) const = default;
};

struct PlanTime {  // seconds of a step
  double device = 0;
  double host = 0;
  double communication = 0;
  double exposed = 0;
  double compute_bound_share = 0;
  bool host_bound = false;

  bool operator==(const PlanTime&) const = default;
};

struct PlanLoader {
  double per_core = 0;  // samples per second
  double cores_needed = 0;
  double read_rate_needed = 0;               // bytes per second
  std::optional<double> samples_per_second;  // of the machine's cores
  std::optional<bool> bound;

  bool operator==(const PlanLoader&) const = default;
};

struct PlanEnergy {
  double device_joules = 0;
  double node_joules = 0;
  double device_watts = 0;
  double pue = 0;
  double node_watts = 0;

  bool operator==(const PlanEnergy&) const = default;
};

struct PlanBill {
  std::string kind;
  std::string payee;
  double amount = 0;
  std::string unit;
  std::string rule;
  std::string source;
  std::string date;
  std::optional<double> session_limit_hours;

  bool operator==(const PlanBill&) const = default;
};

struct PlanCost {
  double gpu_hours = 0;
  double node_hours = 0;
  std::optional<double> core_hours;
  std::optional<double> kwh;
  std::optional<double> amount;  // of the cheapest rent
  std::optional<std::string> currency;
  std::vector<PlanBill> bills;

  bool operator==(const PlanCost&) const = default;
};

struct PlanLevers {
  std::string precision;
  std::vector<std::string> recompute;
  int64_t zero = 0;
  int64_t rows = 0;
  int64_t micro_batch = 0;
  int64_t accumulation = 1;

  bool operator==(const PlanLevers&) const = default;
};

struct PlanOption {
  std::string machine;
  std::string title;
  std::optional<std::string> gpu, cpu;  // catalogue ids
  int64_t gpus = 0;                     // 0: the processors compute
  int64_t nodes = 1;
  bool as_written = true;
  std::vector<std::string> set;
  bool fits = false;
  bool feasible = false;
  bool drivable = true;
  std::optional<std::optional<std::string>> last_cuda;  // where it is not drivable; the inner one: by CUDA ever
  PlanMemory memory;
  PlanHostMemory host_memory;
  std::optional<PlanStep> step_seconds;  // with phases the mean over their steps
  std::vector<PlanPhase> phases;         // empty: the job has none
  std::optional<std::string> basis;
  std::optional<double> samples_per_second;
  std::optional<Named<double>> time_by_class;
  std::optional<PlanTime> time;
  std::optional<int64_t> steps, steps_per_epoch, last_batch;
  std::optional<double> epoch_seconds, total_seconds;
  std::optional<int64_t> jobs;
  double walltime_seconds = 0;  // of one job; 0: no limit
  double start_up_seconds = 0;
  std::optional<double> start_up_low_seconds, start_up_high_seconds;
  double save_seconds = 0;
  double restore_seconds = 0;
  std::optional<int64_t> evaluations;
  std::optional<double> evaluation_seconds;
  std::optional<int64_t> saves, saves_at_most;
  std::optional<double> saves_seconds;
  int64_t disk_bytes = 0;
  std::optional<PlanLoader> loader;
  std::optional<double> energy_joules;
  std::optional<PlanEnergy> energy;
  std::optional<PlanCost> cost;
  PlanLevers levers;
  std::optional<Job> job;  // with the changes in `set`
  std::vector<std::string> why;

  bool operator==(const PlanOption&) const = default;
};

struct PlanBest {  // indices into the options
  std::optional<int64_t> fastest, cheapest, smallest;
  std::string cheapest_by;

  bool operator==(const PlanBest&) const = default;
};

struct PlanTiming {
  double trace_seconds = 0;
  double forecast_seconds = 0;
  int64_t traces = 0;

  bool operator==(const PlanTiming&) const = default;
};

inline constexpr const char* kPlanFormat = "lockstep plan 1";

struct Plan {
  std::string format = kPlanFormat;
  std::string version;
  std::string commit;
  std::string name;
  std::string headline;
  bool recorded = false;
  std::optional<Job> job;  // resolved; none of a recording
  std::optional<std::string> job_sha256;
  std::string model;
  int64_t parameters = 0;
  int64_t checkpoint_bytes = 0;
  std::string description;
  PlanBest best;
  std::vector<PlanOption> options;
  std::vector<std::string> notes;
  Named<std::string> assumptions;
  PlanTiming timing;

  bool operator==(const Plan&) const = default;

  // The job that an option is about: its own, or else the plan's. REQUIRES: a plan of a job.
  const Job& job_of(const PlanOption& option) const { return option.job ? *option.job : *job; }
};

// User error, with file, line and key: another document, a key that is missing, unknown or of the wrong kind.
Plan load_plan(const base::Path& path);
Plan parse_plan(const base::Json& document);

base::Json to_json(const Plan& plan);

const Section& plan_section();  // the table of its fields

}  // namespace lockstep::spec
