// SPDX-License-Identifier: Apache-2.0
// The fields are those that public application guides ask for (ARCHER2, HECToR, NCAR, ACCESS, GCS, Cyfronet, ac3).
#include <algorithm>
#include <cmath>

#include "lockstep/advice/apply.h"
#include "lockstep/advice/measured_columns.h"
#include "lockstep/advice/measured_table.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/wording.h"
#include "lockstep/version.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::text;
using forecast::Option;

std::string or_blank(const std::string& words, const std::string& what) {
  return words.empty() ? text("[TO FILL IN: ", what, "]") : words;
}

std::string unit_words(spec::GrantUnit unit) {
  return unit == spec::GrantUnit::gpu_hour    ? "GPU-hours"
         : unit == spec::GrantUnit::node_hour ? "node-hours"
                                              : "core-hours";
}

std::string amount(double units) {
  return base::fixed(units, units < 100 ? 1 : 0);
}

const Estimate& largest(const Application& application) {
  return *std::max_element(
      application.estimates.begin(), application.estimates.end(),
      [](const auto& a, const auto& b) { return a.option.length->total < b.option.length->total; });
}

void open_paper(Paper& paper, const Application& application) {
  const spec::Project& project = application.project;
  const std::string unit = unit_words(project.centre.unit);
  paper.say(text("To ", project.centre.name, ". Asked for: ", amount(application.units), " ", unit, " on ",
                 project.gpus, " x ", project.wanted, " a job, over ", application.periods.size(), " period",
                 application.periods.size() == 1 ? "" : "s", " of ", project.centre.period_months,
                 " months; the smallest grant of any use is ", amount(application.smallest_units), " ", unit,
                 " (one run of each experiment)."));
  for (const auto& line : planning::undriven(application.as_written)) paper.say(text("Note: ", line, "."));
  paper.heading("Who and what for");
  paper.table({{{"field"}, {"answer"}},
               {{"title", project.name},
                {"goal", or_blank(project.goal, "what shall be found out")},
                {"applicant", or_blank(project.applicant, "name, position, contact")},
                {"supervisor", or_blank(project.supervisor, "name, and the signed letter where a student applies")},
                {"experience with HPC", or_blank(project.experience, "machines used before, prior allocations")},
                {"funding", or_blank(project.funding, "who pays for the project")},
                {"rights in the data",
                 or_blank(project.data_rights, "licence of the data sets; consent where people are shown")}},
               ""});
}

// What the hours of one experiment rest on.
std::string counted_with(const Estimate& estimate) {
  const auto& experiment = estimate.experiment;
  std::string words = text(experiment.name, ": ", planning::description(estimate.plan), "; ", experiment.runs,
                           experiment.runs == 1 ? " setting" : " settings", " x ", experiment.seeds,
                           experiment.seeds == 1 ? " seed" : " seeds");
  if (experiment.tuning_runs > 0) {
    words += text(", and ", experiment.tuning_runs, " tuning runs of ", base::percent(experiment.tuning_share, 0),
                  " of a run each");
  }
  return words;
}

// Hours that a queue has: a run with a quarter more, at least one.
int64_t walltime_hours(const Estimate& estimate) {
  constexpr double kSpare = 1.25;
  const auto& length = *estimate.option.length;
  const double job = length.total / static_cast<double>(std::max<int64_t>(1, length.jobs));
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(kSpare * job / planning::kSecondsPerHour)));
}

void add_work(Paper& paper, const Application& application) {
  const spec::Project& project = application.project;
  const std::string unit = unit_words(project.centre.unit);
  paper.heading("The work and what it needs");
  Paper::Grid grid{{{"experiment"},
                    {"runs", Align::right},
                    {"a run", Align::right},
                    {"jobs", Align::right},
                    {text(unit, " a run"), Align::right},
                    {text(unit, " in all"), Align::right},
                    {"months", Align::right}},
                   {},
                   text("Runs = settings x seeds + tuning runs by their share; ",
                        base::percent(project.failure_margin, 0), " for failures is in the last column.")};
  std::vector<std::string> counted;
  for (const auto& estimate : application.estimates) {
    const auto& experiment = estimate.experiment;
    counted.push_back(counted_with(estimate));
    grid.rows.push_back({experiment.name, base::fixed(estimate.full_runs, 1), planning::run_text(estimate.option),
                         text(estimate.option.length->jobs), amount(estimate.run_units), amount(estimate.units),
                         text(experiment.from_month, " to ", experiment.from_month + experiment.months - 1)});
  }
  paper.table(std::move(grid));
  paper.say("The hours stand and fall with these, which are the applicant's to change (project and job document):");
  paper.list(std::move(counted));
  Paper::Grid periods{{{"period"}, {unit, Align::right}}, {}, "Split by allocation period"};
  for (size_t i = 0; i < application.periods.size(); ++i) {
    const auto first = static_cast<int64_t>(i) * project.centre.period_months + 1;
    periods.rows.push_back(
        {text("months ", first, " to ", first + project.centre.period_months - 1), amount(application.periods[i])});
  }
  periods.rows.push_back({"in all", amount(application.units)});
  paper.table(std::move(periods));
}

void add_derivation(Paper& paper, const Application& application) {
  const Estimate& big = largest(application);
  const Option& option = big.option;
  const auto& step = option.trial.time->step;
  paper.heading("How the hours were derived");
  paper.say(
      text("Lockstep executes the very training step on a simulated GPU, replays the memory allocator over what it "
           "records and times each operator by a calibrated model. For ",
           planning::label_of(option), option.changes.empty() ? "" : text(" with ", planning::changes_text(option)),
           ": ", base::format_duration(step.value), " a step (", base::format_duration(step.low), " to ",
           base::format_duration(step.high), ", ",
           step.basis == forecast::Basis::measured ? "measured on this GPU type" : "carried over from a measured GPU",
           "), ", base::fixed(option.samples_per_second, 0), " samples/s, ", option.length->steps, " steps a run."));
  if (!option.changes.empty()) {
    std::string sets;
    for (const auto& change : option.changes) sets += " " + base::shell_words({"--set", change});
    paper.say(text("With", sets, " the job runs there."));
  }
}

void add_job_sizes(Paper& paper, const Application& application) {
  paper.heading("Smallest, typical and largest job");
  const auto hours = [](const Estimate& estimate, double share) {
    const auto& length = *estimate.option.length;
    const double total = share * length.total;
    const double limit = length.total / static_cast<double>(std::max<int64_t>(1, length.jobs));
    return base::format_duration(std::min(total, std::max(limit, 1.0)));
  };
  const auto row = [&](const std::string& which, const Estimate& estimate, double share) {
    const Option& option = estimate.option;
    return std::vector<std::string>{which, planning::label_of(option), hours(estimate, share),
                                    planning::bytes_text(option.trial.memory.total),
                                    planning::bytes_text(option.host.total)};
  };
  const Estimate* small = &application.estimates.front();
  for (const auto& estimate : application.estimates) {
    const auto length = [](const Estimate& one) {
      return one.option.length->total * (one.experiment.tuning_runs > 0 ? one.experiment.tuning_share : 1);
    };
    if (length(estimate) < length(*small)) small = &estimate;
  }
  const Estimate& typical = application.estimates[application.estimates.size() / 2];
  const double share = small->experiment.tuning_runs > 0 ? small->experiment.tuning_share : 1;
  paper.table(
      {{{"job"}, {"on"}, {"time", Align::right}, {"memory of a GPU", Align::right}, {"of a node", Align::right}},
       {row("smallest", *small, share), row("typical", typical, 1), row("largest", largest(application), 1)},
       ""});
}

void add_memory(Paper& paper, const Application& application) {
  const Option& option = largest(application).option;
  const auto& memory = option.trial.memory;
  paper.heading("Memory of a GPU, by what it is for");
  paper.say(text("The network has ", base::format_short_count(static_cast<double>(application.as_written.parameters)),
                 " parameters: ", planning::bytes_text(application.as_written.parameters * 4),
                 " to store in fp32. Training it needs, on ", planning::label_of(option),
                 option.changes.empty() ? "" : text(" with ", planning::changes_text(option)), ":"));
  Paper::Grid grid{{{"class"}, {"bytes", Align::right}}, {}, ""};
  for (const auto& [kind, size] : memory.by_class) {
    if (size > 0) grid.rows.push_back({name_of(kind), planning::bytes_text(size)});
  }
  grid.rows.push_back({"reserved and not used", planning::bytes_text(memory.peak_reserved - memory.peak_allocated)});
  grid.rows.push_back({"CUDA context", planning::bytes_text(memory.context)});
  if (memory.nccl > 0) grid.rows.push_back({"communication", planning::bytes_text(memory.nccl)});
  grid.rows.push_back({"in all", planning::bytes_text(memory.total)});
  paper.table(std::move(grid));
  Paper::Bars bars{text("Memory of a GPU at the peak (", planning::label_of(option), ")"), {}};
  for (const auto& [kind, size] : memory.by_class) {
    if (size > 0) bars.rows.push_back({name_of(kind), static_cast<double>(size), planning::bytes_text(size)});
  }
  const int64_t rest = memory.total - memory.peak_allocated;
  bars.rows.push_back({"driver, communication, unused", static_cast<double>(rest), planning::bytes_text(rest)});
  paper.bars(std::move(bars));
}

void add_scaling(Paper& paper, const Application& application) {
  const planning::Plan& plan = largest(application).plan;
  paper.heading("Scaling");
  Paper::Grid grid{{{"GPUs", Align::right},
                    {"fits"},
                    {"step", Align::right},
                    {"samples/s", Align::right},
                    {"efficiency", Align::right},
                    {"communication not hidden", Align::right}},
                   {},
                   "Same global batch whatever the GPUs (strong scaling); efficiency against the fewest GPUs on which "
                   "it fits. Forecast: replace by measurements (lockstep bench scaling) when access is there."};
  Paper::Bars bars{"Time of a run", {}};
  double first = 0;
  int64_t first_gpus = 0;
  for (const auto& option : plan.options) {
    const auto& time = option.trial.time;
    if (option.machine_option.name != application.project.wanted || !time) continue;
    if (tried_on(plan, option.machine_option.name, option.machine_option.gpus).feasible() != &option) {
      if (option.as_written && !option.trial.fits &&
          !tried_on(plan, option.machine_option.name, option.machine_option.gpus).feasible()) {
        grid.rows.push_back({text(option.machine_option.gpus), "no", "-", "-", "-", "-"});
      }
      continue;
    }
    if (first == 0) {
      first = option.samples_per_second;
      first_gpus = option.machine_option.gpus;
    }
    const double factor = static_cast<double>(option.machine_option.gpus) / static_cast<double>(first_gpus);
    const std::string changes = planning::changes_text(option);
    grid.rows.push_back({text(option.machine_option.gpus), changes.empty() ? "yes" : text("with ", changes),
                         base::format_duration(time->step.value), base::fixed(option.samples_per_second, 0),
                         base::percent(option.samples_per_second / first / factor),
                         base::format_duration(time->exposed)});
    bars.rows.push_back({text(planning::label_of(option)), planning::run_seconds(option), planning::run_text(option)});
  }
  paper.table(std::move(grid));
  if (!bars.rows.empty()) paper.bars(std::move(bars));
}

// What somebody measured, as `lockstep bench scaling` wrote it: beside the forecast, never in its place unsaid.
void add_measured_scaling(Paper& paper, const Application& application) {
  if (application.project.scaling.empty()) return;
  const Measured measured = parse_measured(base::read_json(application.project.scaling));
  for (const auto& table : measured.tables) {
    Paper::Grid grid{{{"ranks", Align::right},
                      {"samples of each", Align::right},
                      {"steps", Align::right},
                      {"hours", Align::right},
                      {"samples/s", Align::right},
                      {"efficiency", Align::right}},
                     {},
                     text("Measured: ", table.title, ". ", measured.source)};
    const auto& first = table.rows[0];
    const auto rate = [](const forecast::ScalingRow& row) {
      return row.rate > 0 ? row.rate : forecast::rate_from_steps(row);
    };
    for (const auto& row : table.rows) {
      grid.rows.push_back({text(row.gpus), base::fixed(row.batch, 0), base::fixed(row.steps, 0),
                           base::fixed(row.hours(), 4), base::fixed(rate(row), 1),
                           base::fixed(forecast::scaling_efficiency(rate(row), row.gpus, rate(first), first.gpus), 3)});
    }
    add_measured_columns(table, grid);
    paper.table(std::move(grid));
  }
}

// One line a lesser machine: by how many bytes, hours or years it fails, or that it would do.
std::string shortcoming(const planning::Plan& plan, const std::string& machine_option, int64_t gpus,
                        const Option& wanted) {
  const Tried tried = tried_on(plan, machine_option, gpus);
  const Option* option = tried.feasible();
  const std::string driven =
      tried.written->drivable
          ? ""
          : text("; no current CUDA drives it (last: ", tried.written->machine_option.gpu->last_cuda.value_or("none"),
                 ")");
  if (!option) {
    const Option& best = tried.found ? *tried.found : *tried.written;
    const std::string lack = lack_of_memory(best);
    if (!lack.empty()) return text("does not fit: ", lack, driven);
    return text(base::join(best.why, "; "), driven);
  }
  const std::string changes = planning::changes_text(*option);
  if (!option->length) return text("fits", changes.empty() ? "" : text(" with ", changes), driven);
  return text("fits", changes.empty() ? "" : text(" with ", changes), "; a run takes ", planning::run_text(*option),
              " in ", option->length->jobs, option->length->jobs == 1 ? " job" : " jobs", ", ",
              base::fixed(option->length->total / wanted.length->total, 1), " times as long", driven);
}

void add_lesser(Paper& paper, const Application& application) {
  const spec::Project& project = application.project;
  if (project.lesser.empty()) return;
  paper.heading("The machines at hand, and what each lacks");
  const Estimate& big = largest(application);
  Paper::Grid grid{{{"machine"}, {"GPUs", Align::right}, {"verdict"}}, {}, ""};
  for (const auto& option : big.plan.options) {
    const bool lesser =
        std::find(project.lesser.begin(), project.lesser.end(), option.machine_option.name) != project.lesser.end();
    if (!lesser || !option.as_written) continue;
    grid.rows.push_back({option.machine_option.name, text(option.machine_option.gpus),
                         shortcoming(big.plan, option.machine_option.name, option.machine_option.gpus, big.option)});
  }
  paper.table(std::move(grid));
}

void add_requirements(Paper& paper, const Application& application) {
  const Estimate& big = largest(application);
  const Option& option = big.option;
  std::vector<std::string> needs{
      text("GPUs with at least ", planning::bytes_text(option.trial.memory.total), ", ", application.project.gpus,
           " of them in one job, compute capability 7.5 or newer (CUDA 13)"),
      text("a walltime of ", walltime_hours(big), " h for a run in ", option.length->jobs,
           option.length->jobs == 1 ? " job" : " jobs",
           "; where less is allowed it goes on over more of them, each of an hour or more"),
      text("main memory of ", planning::bytes_text(option.host.total), " a node"),
      text("disk: ", planning::bytes_text(application.disk_bytes), " at the peak")};
  if (option.loader) {
    const auto cores = static_cast<int64_t>(std::ceil(option.loader->cores_needed));
    needs.push_back(text(cores, cores == 1 ? " processor core" : " processor cores",
                         " to decode the images as fast as the GPUs take them (",
                         base::fixed(option.samples_per_second, 0), " samples/s, ",
                         base::format_rate(option.read_rate_wanted()), " from the file system, ",
                         base::format_bytes(big.plan.assumptions.sample.stored_bytes), " an image)"));
  }
  paper.heading(text("What ", application.project.centre.name, " must have"));
  paper.list(std::move(needs));
}

void add_storage(Paper& paper, const Application& application) {
  const spec::Project& project = application.project;
  const Estimate& big = largest(application);
  const auto& checkpoint = big.plan.job.checkpoint;
  paper.heading("Disk, files, transfer and checkpoints");
  paper.table(
      {{{"what"}, {"amount"}},
       {{"peak disk", text(planning::bytes_text(application.disk_bytes), ": the collection as it comes and as shards, ",
                           checkpoint.keep + 1, " checkpoints of the running job, all results")},
        {"files", text(project.dataset_files > 0 ? base::format_count(project.dataset_files)
                                                 : or_blank("", "files of the data sets"),
                       " as they come; as shards of 1 GB about ",
                       std::max<int64_t>(1, project.dataset_bytes / 1'000'000'000), " and three indexes each")},
        {"moved in", text(planning::bytes_text(application.moved_in_bytes), ", once")},
        {"moved out",
         text(planning::bytes_text(application.moved_out_bytes), ": the weights of every run and the results")},
        {"checkpoint",
         text(planning::bytes_text(big.plan.checkpoint_bytes), ", written in ",
              base::format_duration(big.option.pace.save),
              checkpoint.every_epochs > 0 ? text(", every ", checkpoint.every_epochs, " epochs")
                                          : std::string(" while training goes on, as often as Young's rule says"),
              " and before the walltime ends")},
        {"after the project", or_blank("", "medium- and long-term storage, backup")}},
       ""});
}

void add_software(Paper& paper, const Application& application) {
  paper.heading("Software");
  paper.list({text("Lockstep ", LOCKSTEP_VERSION, " (C++20): built with g++ 12 or newer and CMake, without root"),
              "libtorch 2.11 with CUDA 13 from its wheel; an MPI for ranks on processors; nothing else is needed",
              "launched by srun, mpirun or alone; stops before the walltime and goes on in the next job",
              or_blank(application.project.support, "support needed from the centre, training wanted")});
}

void add_claims(Paper& paper, const Application& application) {
  if (application.checked.empty()) return;
  paper.heading("The applicant's statements, checked");
  Paper::Grid grid{{{"statement"}, {"is"}, {"because"}},
                   {},
                   text("For the job as written: ", planning::description(application.as_written), ".")};
  for (const auto& one : application.checked) {
    grid.rows.push_back({one.claim.says, words_of(one.verdict), one.because});
  }
  paper.table(std::move(grid));
}

}  // namespace

Paper justification(const Application& application) {
  Paper paper;
  paper.title = text("Justification: ", application.project.name);
  open_paper(paper, application);
  add_work(paper, application);
  add_derivation(paper, application);
  add_job_sizes(paper, application);
  add_memory(paper, application);
  add_scaling(paper, application);
  add_measured_scaling(paper, application);
  add_lesser(paper, application);
  add_requirements(paper, application);
  add_storage(paper, application);
  add_software(paper, application);
  add_claims(paper, application);
  return paper;
}

}  // namespace lockstep::advice
