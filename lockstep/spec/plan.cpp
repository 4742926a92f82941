// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/plan.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

using base::Json;
using base::text;

constexpr size_t kMostBytes = size_t{256} << 20;

const Section& block_section() {
  static const Section section =
      Table<PlanBlock>("largest", "the largest blocks alive at the peak")
          .complete()
          .add("bytes", &PlanBlock::bytes, "bytes", anything, "its size")
          .add("class", &PlanBlock::memory_class, "", anything, "what it holds: weights, activations, ...")
          .add("born_by", &PlanBlock::born_by, "", anything, "the operator and block of the network that made it")
          .done();
  return section;
}

const Section& memory_section() {
  static const Section section =
      Table<PlanMemory>("memory", "of one GPU, of the process where processors compute")
          .complete()
          .add("peak_reserved_bytes", &PlanMemory::peak_reserved, "bytes", anything,
               "what the allocator takes from the GPU, from step 2 on")
          .add("peak_allocated_bytes", &PlanMemory::peak_allocated, "bytes", anything, "of that, what tensors occupy")
          .add("cold_peak_reserved_bytes", &PlanMemory::cold_peak_reserved, "bytes", anything, "reserved in step 1")
          .add("fragmentation_bytes", &PlanMemory::fragmentation, "bytes", anything, "reserved, but of no use")
          .add("context_bytes", &PlanMemory::context, "bytes", anything, "CUDA's own")
          .add("nccl_bytes", &PlanMemory::nccl, "bytes", anything, "NCCL's own")
          .add("total_bytes", &PlanMemory::total, "bytes", anything, "reserved + context + NCCL")
          .add("capacity_bytes", &PlanMemory::capacity, "bytes", anything, "what there is; 0: not stated")
          .add("by_class", &PlanMemory::by_class, "bytes", anything, "alive at the peak, by what they hold")
          .add("moment", &PlanMemory::moment, "", anything, "when the peak is")
          .list("largest", &PlanMemory::largest, block_section())
          .maybe("curve", &PlanMemory::curve, Absence::left_out, "bytes", anything,
                 "event, and of each class the bytes alive after it; of the best options only where there are many")
          .done();
  return section;
}

const Section& host_section() {
  static const Section section =
      Table<PlanHostMemory>("host_memory", "main memory of one node")
          .complete()
          .add("total_bytes_per_node", &PlanHostMemory::total, "bytes", anything, "the sum of the others")
          .add("processes_bytes", &PlanHostMemory::processes, "bytes", anything, "program, libraries, CUDA's own")
          .add("pinned_bytes", &PlanHostMemory::pinned, "bytes", anything, "batches on their way to the GPUs")
          .add("loader_bytes", &PlanHostMemory::loader, "bytes", anything,
               "batches in flight of training and evaluation, whole shares of a rank, and what the threads decode")
          .add("features_bytes", &PlanHostMemory::features, "bytes", anything, "cache_features: of frozen blocks")
          .add("staged_bytes", &PlanHostMemory::staged, "bytes", anything,
               "data.stage \"ram\": shards, where they fit half of the memory and are here to be asked")
          .add("checkpoint_bytes", &PlanHostMemory::checkpoint, "bytes", anything, "of the checkpoint being written")
          .done();
  return section;
}

const Section& step_section() {
  static const Section section = Table<PlanStep>("step_seconds", "one optimizer step")
                                     .complete()
                                     .add("value", &PlanStep::value, "seconds", anything, "expected")
                                     .add("low", &PlanStep::low, "seconds", anything, "at best")
                                     .add("high", &PlanStep::high, "seconds", anything, "at worst")
                                     .done();
  return section;
}

const Section& plan_phase_section() {
  static const Section section =
      Table<PlanPhase>("phases", "of the job, in their order; empty: it has none")
          .complete()
          .add("name", &PlanPhase::name, "", anything, "what it trains, in words")
          .add("memory_bytes", &PlanPhase::memory, "bytes", anything, "memory.total_bytes is the most of all phases")
          .maybe_nest("step_seconds", &PlanPhase::step_seconds, Absence::null, step_section())
          .add("features_seconds", &PlanPhase::features, "seconds", anything,
               "of the pass that fills its cache of features")
          .done();
  return section;
}

const Section& time_section() {
  static const Section section =
      Table<PlanTime>("time", "where the time of a step goes")
          .complete()
          .add("device_seconds", &PlanTime::device, "seconds", anything, "that the GPU or the processors are busy")
          .add("host_seconds", &PlanTime::host, "seconds", anything, "that the launching thread is busy")
          .add("communication_seconds", &PlanTime::communication, "seconds", anything, "of collectives")
          .add("exposed_seconds", &PlanTime::exposed, "seconds", anything, "of these, not hidden behind computing")
          .add("compute_bound_share", &PlanTime::compute_bound_share, "", anything,
               "of device_seconds: limited by arithmetic, not by memory")
          .add("host_bound", &PlanTime::host_bound, "", anything, "the launching thread is slower than the GPU")
          .done();
  return section;
}

const Section& loader_section() {
  static const Section section =
      Table<PlanLoader>("loader", "what decodes the samples; null: nothing is decoded")
          .complete()
          .add("per_core", &PlanLoader::per_core, "samples per second", anything, "of one core")
          .add("cores_needed", &PlanLoader::cores_needed, "cores", anything, "to keep up with the steps")
          .add("read_rate_needed", &PlanLoader::read_rate_needed, "bytes per second", anything, "likewise")
          .maybe("samples_per_second", &PlanLoader::samples_per_second, Absence::null, "", anything,
                 "of the machine's cores")
          .maybe("bound", &PlanLoader::bound, Absence::null, "", anything, "decoding is slower than the step")
          .done();
  return section;
}

const Section& energy_section() {
  static const Section section =
      Table<PlanEnergy>("energy", "parts of energy_joules")
          .complete()
          .add("device_joules", &PlanEnergy::device_joules, "joules", anything, "of all GPUs or processors")
          .add("node_joules", &PlanEnergy::node_joules, "joules", anything, "of the rest of the nodes")
          .add("device_watts", &PlanEnergy::device_watts, "watts", anything, "of one GPU or processor")
          .add("pue", &PlanEnergy::pue, "", anything, "assumed: the building's meter over the machine's")
          .add("node_watts", &PlanEnergy::node_watts, "watts", anything, "assumed: of a node beside these")
          .done();
  return section;
}

const Section& bill_section() {
  static const Section section =
      Table<PlanBill>("bills", "what it costs, to whom")
          .complete()
          .add("kind", &PlanBill::kind, "", anything, "rent, electricity or grant")
          .add("payee", &PlanBill::payee, "", anything, "provider or machine; empty: the source does not name it")
          .add("amount", &PlanBill::amount, "", anything, "money, or units of a grant")
          .add("unit", &PlanBill::unit, "", anything, "currency, or the unit's name")
          .add("rule", &PlanBill::rule, "", anything, "how it was computed")
          .add("source", &PlanBill::source, "", anything, "of the price")
          .add("date", &PlanBill::date, "", anything, "of the source")
          .maybe("session_limit_hours", &PlanBill::session_limit_hours, Absence::left_out, "hours", anything,
                 "longest session there")
          .done();
  return section;
}

const Section& cost_section() {
  static const Section section =
      Table<PlanCost>("cost", "hours and money; {}: the length of the run is not known")
          .complete()
          .add("gpu_hours", &PlanCost::gpu_hours, "hours", anything, "of all GPUs")
          .add("node_hours", &PlanCost::node_hours, "hours", anything, "of all nodes")
          .maybe("core_hours", &PlanCost::core_hours, Absence::null, "hours", anything, "of all cores")
          .maybe("kwh", &PlanCost::kwh, Absence::null, "kWh", anything, "at the building's meter")
          .maybe("amount", &PlanCost::amount, Absence::left_out, "", anything, "of the cheapest rent")
          .maybe("currency", &PlanCost::currency, Absence::left_out, "", anything, "of it")
          .list("bills", &PlanCost::bills, bill_section())
          .done();
  return section;
}

const Section& levers_section() {
  static const Section section =
      Table<PlanLevers>("levers", "how the step is cut")
          .complete()
          .add("precision", &PlanLevers::precision, "", anything, "as the job spells it")
          .add("recompute", &PlanLevers::recompute, "", anything, "blocks whose activations are computed twice")
          .add("zero", &PlanLevers::zero, "", anything, "what is partitioned over the ranks")
          .add("rows", &PlanLevers::rows, "samples", anything, "of a rank and step")
          .add("micro_batch", &PlanLevers::micro_batch, "samples", anything, "of a pass")
          .add("accumulation", &PlanLevers::accumulation, "passes", anything, "of a step")
          .done();
  return section;
}

Job parse_inner_job(const Json& document) {
  return parse_job(document);
}

// The machine, whether it fits, memory.
void add_place(Table<PlanOption>& table) {
  table.add("machine", &PlanOption::machine, "", anything, "as --on names it")
      .add("title", &PlanOption::title, "", anything, "for people: minotauro, 4 x k80")
      .maybe("gpu", &PlanOption::gpu, Absence::null, "", anything, "catalogue id")
      .maybe("cpu", &PlanOption::cpu, Absence::null, "", anything, "catalogue id")
      .add("gpus", &PlanOption::gpus, "GPUs", anything, "0: the processors compute")
      .add("nodes", &PlanOption::nodes, "nodes", anything, "of the machine")
      .add("as_written", &PlanOption::as_written, "", anything, "the job as it stands; else with the changes in set")
      .add("set", &PlanOption::set, "", anything, "the changed keys, as --set takes them")
      .add("fits", &PlanOption::fits, "", anything, "memory.total_bytes is within memory.capacity_bytes")
      .add("feasible", &PlanOption::feasible, "", anything,
           "it fits GPU and node, train does not refuse it, its speed is known, jobs under the walltime make progress")
      .add("drivable", &PlanOption::drivable, "", anything, "a current CUDA drives the GPU")
      .maybe("last_cuda", &PlanOption::last_cuda, Absence::left_out, "", anything,
             "where it is not drivable: the last CUDA that did; null: none ever did")
      .nest("memory", &PlanOption::memory, memory_section())
      .nest("host_memory", &PlanOption::host_memory, host_section());
}

void add_time(Table<PlanOption>& table) {
  table.maybe_nest("step_seconds", &PlanOption::step_seconds, Absence::null, step_section())
      .list("phases", &PlanOption::phases, plan_phase_section())
      .maybe("basis", &PlanOption::basis, Absence::null, "", anything,
             "measured: calibrated on this very GPU; carried_over: from another by its rates")
      .maybe("samples_per_second", &PlanOption::samples_per_second, Absence::null, "", anything, "of all ranks")
      .maybe("time_by_class", &PlanOption::time_by_class, Absence::null, "seconds", anything,
             "of a step, by operator class")
      .maybe_nest("time", &PlanOption::time, Absence::null, time_section());
}

// Each of these is as the run itself counts it.
void add_length(Table<PlanOption>& table) {
  table.maybe("steps", &PlanOption::steps, Absence::null, "steps", anything, "each phase is rounded to whole steps")
      .maybe("steps_per_epoch", &PlanOption::steps_per_epoch, Absence::null, "steps", anything,
             "the last, smaller batch of an epoch is trained too")
      .maybe("last_batch", &PlanOption::last_batch, Absence::null, "samples", anything, "of the last batch")
      .maybe("epoch_seconds", &PlanOption::epoch_seconds, Absence::null, "seconds", anything,
             "steps, evaluation and save of one epoch")
      .maybe("total_seconds", &PlanOption::total_seconds, Absence::null, "seconds", anything,
             "with start-ups, restores and saves of every job, without the queue")
      .maybe("jobs", &PlanOption::jobs, Absence::null, "jobs", anything,
             "under the walltime; 0: none would make progress")
      .add("walltime_seconds", &PlanOption::walltime_seconds, "seconds", anything, "of one job; 0: no limit")
      .add("start_up_seconds", &PlanOption::start_up_seconds, "seconds", anything,
           "of a job's process before its first step, and what that takes beyond a step")
      .maybe("start_up_low_seconds", &PlanOption::start_up_low_seconds, Absence::left_out, "seconds", anything,
             "80 % of measured start-ups lie above")
      .maybe("start_up_high_seconds", &PlanOption::start_up_high_seconds, Absence::left_out, "seconds", anything,
             "and below this")
      .add("save_seconds", &PlanOption::save_seconds, "seconds", anything, "until a checkpoint is written")
      .add("restore_seconds", &PlanOption::restore_seconds, "seconds", anything, "of a checkpoint")
      .maybe("evaluations", &PlanOption::evaluations, Absence::left_out, "", anything, "how many")
      .maybe("evaluation_seconds", &PlanOption::evaluation_seconds, Absence::left_out, "seconds", anything,
             "of all of them")
      .maybe("saves", &PlanOption::saves, Absence::left_out, "", anything,
             "how many: every checkpoint.every_epochs or by Young's rule, for milestones, and at the end")
      .maybe("saves_at_most", &PlanOption::saves_at_most, Absence::left_out, "", anything,
             "should every evaluation be the best so far, and so be saved")
      .maybe("saves_seconds", &PlanOption::saves_seconds, Absence::left_out, "seconds", anything,
             "that the steps wait for saves_at_most saves")
      .add("disk_bytes", &PlanOption::disk_bytes, "bytes", anything,
           "of all checkpoints at once: checkpoint.keep, the one being written, the best, the milestones");
}

const Section& option_section() {
  static const Section section = [] {
    Table<PlanOption> table("options", "the ways to run it");
    table.complete();
    add_place(table);
    add_time(table);
    add_length(table);
    table.maybe_nest("loader", &PlanOption::loader, Absence::null, loader_section())
        .maybe("energy_joules", &PlanOption::energy_joules, Absence::null, "joules", anything,
               "of the run, at the building's meter")
        .maybe_nest("energy", &PlanOption::energy, Absence::null, energy_section())
        .maybe_nest("cost", &PlanOption::cost, Absence::empty, cost_section())
        .nest("levers", &PlanOption::levers, levers_section())
        .document("job", &PlanOption::job, Absence::left_out, job_section(), parse_inner_job, changed_json,
                  "the changed job, where something is changed")
        .add("why", &PlanOption::why, "", anything, "the reasons in words, with numbers");
    return table.done();
  }();
  return section;
}

const Section& best_section() {
  static const Section section =
      Table<PlanBest>("best", "which options win: indices into options")
          .complete()
          .maybe("fastest", &PlanBest::fastest, Absence::null, "", anything, "the shortest run")
          .maybe("cheapest", &PlanBest::cheapest, Absence::null, "", anything, "by cheapest_by")
          .maybe("smallest", &PlanBest::smallest, Absence::null, "", anything, "the least GPU memory in all")
          .add("cheapest_by", &PlanBest::cheapest_by, "", anything, "rent (USD) or energy; empty: nothing is feasible")
          .done();
  return section;
}

const Section& timing_section() {
  static const Section section =
      Table<PlanTiming>("timing", "how long planning took")
          .complete()
          .add("trace_seconds", &PlanTiming::trace_seconds, "seconds", anything, "on the simulated device")
          .add("forecast_seconds", &PlanTiming::forecast_seconds, "seconds", anything, "everything else")
          .add("traces", &PlanTiming::traces, "", anything, "steps and evaluations that were traced")
          .done();
  return section;
}

void check_format(const Json& document) {
  const Json* format = document.is_object() ? document.find("format") : nullptr;
  if (format && *format == Json(kPlanFormat)) return;
  const char* fix = "make one: lockstep plan JOB --on here --json plan.json";
  Problems problems;
  problems.add(
      format ? *format : document, "format",
      format ? text(format->dump(-1), " is not \"", kPlanFormat, "\"") : "is missing: this is no plan document", fix);
  problems.throw_if_any();
}

}  // namespace

const Section& plan_section() {
  static const Section section =
      Table<Plan>("plan", "what a job needs on each machine: written by lockstep plan --json")
          .complete()
          .add("format", &Plan::format, "", anything, "\"lockstep plan 1\"")
          .add("version", &Plan::version, "", anything, "of the program that made it")
          .add("commit", &Plan::commit, "", anything, "likewise")
          .add("name", &Plan::name, "", anything, "of the job")
          .add("headline", &Plan::headline, "", anything, "what matters most, in words")
          .add("recorded", &Plan::recorded, "", anything, "planned from --recording, not from a job")
          .document("job", &Plan::job, Absence::null, job_section(), parse_inner_job, to_json,
                    "the resolved job document; null: of a recording")
          .maybe("job_sha256", &Plan::job_sha256, Absence::null, "", anything,
                 "of that document, as in the journal of a run")
          .add("model", &Plan::model, "", anything, "the network")
          .add("parameters", &Plan::parameters, "", anything, "weights of the network")
          .add("checkpoint_bytes", &Plan::checkpoint_bytes, "bytes", anything, "of one checkpoint")
          .add("description", &Plan::description, "", anything, "the job, in words")
          .nest("best", &Plan::best, best_section())
          .list("options", &Plan::options, option_section())
          .add("notes", &Plan::notes, "", anything, "what is left out, and how to have it counted")
          .add("assumptions", &Plan::assumptions, "", anything, "every assumed figure, as --assume takes it")
          .nest("timing", &Plan::timing, timing_section())
          .done();
  return section;
}

Plan parse_plan(const Json& document) {
  check_format(document);
  Plan plan;
  Problems problems;
  read_document(plan_section(), &plan, document, problems);
  problems.throw_if_any();
  return plan;
}

Plan load_plan(const base::Path& path) {
  return parse_plan(base::read_json(path, {.max_bytes = kMostBytes}));
}

Json to_json(const Plan& plan) {
  return write_document(plan_section(), &plan, Which::all);
}

}  // namespace lockstep::spec
