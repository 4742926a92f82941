// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/energy.h"
#include "lockstep/forecast/limits.h"
#include "lockstep/forecast/loader_rate.h"
#include "lockstep/forecast/memory.h"
#include "lockstep/forecast/recordings.h"
#include "lockstep/forecast/time.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace lockstep::forecast {

// Where a job could run: a number of GPUs of one type or machine, or the processors of a node.
struct MachineOption {
  std::string name = {};       // as the user named it: "minotauro", "a100-80", "machine.json", "here"
  bool named = false;          // a machine; else a GPU in a node that nobody named
  bool own = false;            // the user's own machine document: what it leaves out is for the user to add
  bool only_memory = false;    // asked for by its memory ("8GB"): nothing else of the GPU is known
  spec::Machine machine = {};  // the document; of an unnamed node what is assumed of it
  std::optional<catalogue::Gpu> gpu = {};
  std::optional<catalogue::Cpu> cpu = {};  // of the node, where it is known
  int64_t gpus = 1;                        // 0: the processors compute
  int64_t per_node = 8;                    // GPUs of a node
  std::vector<std::string> notes = {};     // what had to be assumed of it

  int64_t ranks() const { return gpus > 0 ? gpus : 1; }
  int64_t nodes() const { return gpus > 0 ? (gpus + per_node - 1) / per_node : 1; }
};

// What the search may turn. Names as in the job.
struct Levers {
  std::string precision = {};
  std::vector<std::string> recompute = {};
  int64_t micro_batch = 0;  // 0: the rank's whole share at once
  int64_t zero = 0;         // what is cut over the ranks
  int64_t data_memory = 0;  // bytes of a rank's loaders; 0: as the job says

  bool operator==(const Levers&) const = default;
};

// The job with these levers.
spec::Job with_levers(spec::Job job, const Levers& levers);

// What no document says. All of it is printed with the plan and can be changed.
struct Assumptions {
  // Seconds of a job's process that are no steps: libraries are loaded, and in the first step kernels, which are
  // chosen. On GPUs the median of 39 runs on an H200 node (results/promise-h200.json and promise-h200-fused.json,
  // start-up without a step), on processors that of the 54 runs in results/start-up-cpu.json.
  double start_up = 2.1;
  double start_up_cpu = 0.5;
  // Of an H200 node, from 21 runs of 37 MB to 3.7 GB of state (results/promise-h200.json): a save takes 1.69 s a GB,
  // the run 0.45 before it, while the state is copied, and behind the last one 1.27 more, while it is hashed again.
  double write_rate = 1.7e9;   // bytes per second of a checkpoint, to the disk
  double hash_rate = 0.9e9;    // likewise, its SHA-256 before that
  double copy_rate = 2.2e9;    // likewise, from the GPU into memory that is page-locked for it
  double read_rate = 1e9;      // likewise, restoring
  double upload_rate = 6.2e9;  // bytes per second of a batch on its way to a GPU, from ordinary memory (H200 node)
  double host = 1;             // what the launching thread takes, in what the calibrated one took
  double inter_rate = 12.5e9;  // bytes per second between nodes whose link is not stated (100 Gbit/s)
  int64_t per_node = 8;        // GPUs of a node that nobody named
  double kwh = 0;              // price of electricity, where the machine has none; 0: not counted
  std::string currency = "USD";
  SampleSize sample{110e3, 500.0 * 375.0, 0};  // a JPEG of ImageNet
  PowerRules power = {};

  double start_up_of(const MachineOption& machine_option) const { return machine_option.gpu ? start_up : start_up_cpu; }
};

// Meant for 80 % of such runs: on processors 45 of 54 took between these multiples of the median, on GPUs 27 of the 39.
// Nine were faster; beyond lie EfficientNet-Lite0 (12.5 and 19 s) and one of three runs of ViT-L (6.8 s).
constexpr Spread kStartUpGpu{.low = 0.85, .high = 2};
constexpr Spread kStartUpCpu{.low = 0.55, .high = 2.5};

// Bytes of one sample's fields.
struct SampleBytes {
  int64_t sent = 0;    // on its way to a GPU
  int64_t kept = 0;    // on the GPU while a step runs, all copies together
  bool ahead = false;  // sent while the step before computes
};

// One of the job's phases. Those that train the same blocks in the same way are traced once.
struct PhaseWork {
  std::string name = {};  // "phase 1, from 'head' on cached features"
  int64_t trace = -1;     // of the job's phases the one that is traced for it; -1: the whole network is trained
  double epochs = 1;
  bool caches = false;  // features of the frozen blocks: no sample is read after they are there
  bool graph = true;    // has steps enough for one to become a CUDA graph (run/capture.h), or nobody knows how many
  int64_t odd = 0;      // samples of the largest batch of another shape, which runs beside it; 0: all are alike

  bool operator==(const PhaseWork&) const = default;
};

class RunRules;  // run_rules.h

// The job, as far as a forecast needs it.
struct Workload {
  RunAmount work = {};
  Levers levers = {};        // as written
  bool decodes = false;      // the samples are images that a loader decodes
  int64_t image_pixels = 0;  // that the network sees
  SampleBytes sample = {};
  double walltime = 0;        // the job's own limit; 0: the machine's counts
  int64_t virtual_ranks = 0;  // slices of a batch, each a pass of its own, whatever the ranks; 0: none
  // Seconds between two failures, where the run saves by its clock (run/save_clock.h); none: by epochs.
  std::optional<double> mean_time_between_failures = {};
  bool sync_norm = false;                     // batch norms hear from every rank: how many there are decides the bytes
  int64_t replay_every = 0;                   // steps between two that are computed twice; 0: never
  std::vector<PhaseWork> phases = {};         // empty: the job has none
  std::vector<PhaseWork> whole{PhaseWork{}};  // a job without phases is one
  std::shared_ptr<RunRules> rules = {};       // none: a user's recording, of whose run nothing is known
  bool weak = false;  // each rank takes `global_batch`: a user's recording cannot be cut smaller
};

// The job's phases; of a job without any the one that trains the whole network.
const std::vector<PhaseWork>& phases_of(const Workload& workload);

// Cores of one node; 0: not stated.
int64_t cores_of(const MachineOption& machine_option);

// Everything that a forecast needs and that is the same for all machine options.
struct ForecastContext {
  const catalogue::Catalogue& catalogue;
  const Calibration& calibration;
  Assumptions assumptions;
  Workload workload;
  Recordings& recordings;
  Recordings* evaluation = nullptr;  // of the evaluation pass; null: none is traced
};

// The length of the job on that machine option. The batch grows with the ranks where a share cannot be cut.
RunAmount work_at(const ForecastContext& context, const MachineOption& machine_option);

// Samples of an evaluation pass there; 0: none.
int64_t evaluation_rows(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers);

// One phase of a trial.
struct PhaseTrial {
  size_t phase = 0;                       // index into Workload::phases
  int64_t memory = 0;                     // bytes: what Trial::memory has as its total
  std::optional<TimeForecast> time = {};  // of its step
  double fill_sample = 0;                 // seconds of a rank for one sample of the pass that fills its cache
  double fill = 0;                        // seconds of that pass
};

// Memory and step of one machine option with one set of levers: what the search compares.
struct Trial {
  int64_t rows = 0;         // samples of a rank and step
  int64_t micro_batch = 0;  // samples of a pass
  int64_t passes = 1;
  int64_t capacity = 0;            // bytes of a GPU (of the node's memory on CPUs); 0: not stated
  MemoryForecast memory = {};      // of the phase that needs the most
  TraceKey trace_key = {};         // whose recording that is
  std::vector<PhaseTrial> phases;  // empty: the job has none
  bool fits = false;
  std::optional<base::Error> refusal = {};  // of the run, whatever the memory
  // With phases the mean over the steps of all of them.
  std::optional<TimeForecast> time = {};  // nothing: a rate of the GPU is not known, `no_time` says which
  std::string no_time = {};
};
enum class Depth { all, time_if_it_fits };
Trial try_levers(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                 Depth depth = Depth::all);

// Forecasts are right to this share of a GPU's memory: what the search proposes stays below it.
constexpr double kSafeShare = 0.97;
bool fits_safely(const Trial& trial);

// Bytes that no lever takes away: weights, their gradients, what the optimizer keeps, the driver's share.
int64_t fixed_bytes(const MemoryForecast& memory);

// Main memory of one node that runs this.
HostMemory host_memory(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                       const Recording& recording);

// Seconds of one sample of an evaluation, all ranks together: they have whole batches, and the busiest one counts. In
// phases on cached features the trained blocks alone are run, over cached ones; the mean over the epochs counts.
double evaluation_sample(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                         const Trial& trial);

}  // namespace lockstep::forecast
