// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "lockstep/base/arguments.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/command.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/manners.h"
#include "lockstep/site/memory.h"
#include "lockstep/site/nvml.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/tune/child.h"
#include "lockstep/tune/partition_run.h"
#include "lockstep/tune/study_run.h"
#include "lockstep/verbs/tune/cost.h"
#include "lockstep/verbs/tune/report.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::tune {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using lockstep::tune::StudyOptions;
using lockstep::tune::StudyPaths;
using lockstep::tune::StudyResult;
using lockstep::tune::Trial;

const base::CommandLine& tune_line() {
  static const base::CommandLine line{
      "tune",
      "STUDY [-- PROGRAM WORD...]",
      "study.json -> the best settings of a job, or of any program that prints a number",
      {{"--to", "DIR", "the study's folder (default studies/<name>); a study in it goes on"},
       {"--workers", "N", "trials at once on this node (default 1; on GPUs as many as fit; of a program one a core)"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--set", "KEY=VALUE", "override a key of the study: --set trials=200; may be repeated"},
       {"--no-plan", "", "do not ask lockstep plan what each trial costs and whether it fits"},
       {"--best", "", "print the job with the best settings found so far (of a program: the settings)"},
       {"--report", "", "write the study's page: what was found, curves, importance, costs; default DIR/report.html"},
       {"--out", "FILE", "where --report and --partition write the page"},
       {"--partition", "STUDY", "find the regions of its space in which the program prints different labels"},
       {"--measure", "N", "with --partition: only time the program at N points; gives the load for plan --advise buy"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the result as JSON (- = standard output)"}},
      "A program gets its values where {name} stands, and prints a number: the last one counts (--partition: a "
      "label).\n"
      "One that has no {name} stays alive with --partition: a line of values in, a label out. The study is Optuna's\n"
      "journal file, DIR/study.log: optuna.load_study and optuna-dashboard open it while it runs. Any number of these\n"
      "commands may work on one study, on any node that shares its folder; exit code 85: stopped, the same command "
      "goes "
      "on.\n"
      "examples: lockstep tune study.json --workers 4\n"
      "          lockstep tune examples/branin.json --set trials=30 -- python3 examples/branin.py {x} {y}\n"
      "          lockstep tune examples/branin.json --best\n"
      "          lockstep tune --partition examples/regions.json -- python3 examples/regions.py"};
  return line;
}

base::Path study_folder(const spec::Study& study, const base::Arguments& arguments) {
  const base::Path folder =
      std::filesystem::absolute(arguments.value_or("--to", text("studies/", study.name))).lexically_normal();
  return folder.filename().empty() ? folder.parent_path() : folder;
}

void choose_workers(const base::Arguments& arguments, StudyOptions& options) {
  const bool cuda = options.device == "cuda";
  if (cuda) options.gpus = site::usable_gpus();
  const auto gpus = static_cast<int64_t>(options.gpus.size());
  const int64_t ranks = options.study.ranks;
  if (cuda && gpus < ranks) {
    throw Error(Blame::machine, text("a trial has ", ranks, " ranks, and here are ", gpus, " GPUs"),
                "--set ranks=1, or a node that has more");
  }
  const int64_t fits = cuda ? gpus / ranks : options.program.empty() ? 1 : site::usable_cores();
  options.workers = arguments.int_or("--workers", fits);
  if (options.workers < 1 || options.workers > 1000) {
    throw Error(Blame::user, text("--workers ", options.workers), "1 to 1000");
  }
  if (cuda && options.workers * ranks > gpus) {
    throw Error(Blame::user,
                text("--workers ", options.workers, " of ", ranks, " ranks each: here are ", gpus, " GPUs"),
                text("--workers ", gpus / ranks));
  }
}

std::function<lockstep::tune::TrialCost(const std::vector<std::string>&)> planner(const StudyOptions& options) {
  const bool cuda = options.device == "cuda";
  const TrialPlace place{cuda ? options.study.ranks : 0, options.workers,
                         static_cast<int64_t>(site::read_memory().usable()), cuda ? 1 : options.study.ranks};
  return [place, program = options.lockstep, path = StudyPaths{options.folder}.job(),
          job = *options.job](const std::vector<std::string>& sets) {
    return ask_cost(program, path, sets_of_rank(job, sets, place.ranks), place);
  };
}

void check_program(const spec::Study& study, const std::vector<std::string>& program) {
  std::vector<std::pair<std::string, std::string>> names{{"trial", ""}};
  for (const auto& dimension : study.space) names.emplace_back(dimension.key, "");
  bool found = false;
  lockstep::tune::fill_in(program, names, &found);
  if (found) return;
  throw Error(Blame::user, text("the program gets none of its values: no {", study.space.front().key, "} stands in it"),
              text(base::join(program, " "), " {", study.space.front().key, "}"));
}

Json settings_json(const lockstep::tune::Space& space, const Trial& trial) {
  Json settings = Json::object();
  for (const auto& parameter : space) {
    const auto value = trial.values.find(parameter.name);
    if (value != trial.values.end()) settings[parameter.name] = parameter.distribution.external(value->second);
  }
  return settings;
}

Json result_json(const StudyResult& result, const lockstep::tune::Space& space, const base::Path& folder) {
  Json all = Json::object();
  all["folder"] = folder.string();
  all["complete"] = result.complete;
  all["pruned"] = result.pruned;
  all["infeasible"] = result.infeasible;
  all["failed"] = result.failed;
  all["running"] = result.running;
  all["paused"] = result.paused;
  all["unpaid"] = result.unpaid;
  all["node_hours"] = result.node_hours;
  all["stopped"] = result.stopped;
  all["best"] = Json();
  if (result.best) {
    all["best"] = Json::object();
    all["best"]["trial"] = result.best->number;
    all["best"]["value"] = *result.best->objective;
    all["best"]["settings"] = settings_json(space, *result.best);
  }
  return all;
}

std::string result_text(const StudyResult& result, const lockstep::tune::Space& space, const base::Path& folder) {
  std::string words = text(folder.string(), ": ", result.complete, " trials complete");
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) words += text(", ", count, " ", what);
  };
  add(result.pruned, "pruned");
  add(result.infeasible, "that could not fit");
  add(result.failed, "failed");
  add(result.running, "not ended");
  add(result.paused, "paused");
  add(result.unpaid, "that the budget does not pay");
  words += text("; ", base::fixed(result.node_hours, 3), " node-hours\n");
  if (result.best) {
    words += text("best: trial ", result.best->number, ", ", *result.best->objective, "\n");
    const Json settings = settings_json(space, *result.best);
    for (const auto& member : settings.members()) words += text("  ", member.key, " = ", member.value.dump(-1), "\n");
  }
  return words;
}

struct Question {
  spec::Study study;
  std::optional<spec::Job> job;
  base::Path folder;
};

// The positional words are the study and, behind --, the program.
Question read_question(const base::Arguments& arguments) {
  if (arguments.positional.empty()) {
    throw Error(Blame::user, "which study?", "lockstep tune study.json; `lockstep explain study` says what is in it");
  }
  Question question;
  const base::Path named = arguments.positional.front();
  const bool folder = std::filesystem::is_directory(named);
  question.study = spec::load_study(folder ? StudyPaths{named}.study() : named, arguments.values("--set"));
  question.folder =
      folder ? std::filesystem::absolute(named).lexically_normal() : study_folder(question.study, arguments);
  if (!question.study.job.empty()) {
    const base::Path job = folder ? StudyPaths{question.folder}.job() : base::Path(question.study.job);
    question.job = weights::load_job(job).job;
  }
  return question;
}

lockstep::tune::StudyFile open_study(const Question& question) {
  const StudyPaths paths{question.folder};
  if (!base::is_there(paths.log())) {
    throw Error(Blame::user, text(paths.log().string(), ": there is no such study yet"), "run it, or name it by --to");
  }
  return {paths.log(), question.study.name, "reader"};
}

int print_best(const base::Arguments& arguments, const Question& question) {
  const StudyPaths paths{question.folder};
  const lockstep::tune::StudyFile file = open_study(question);
  const auto space = lockstep::tune::make_space(question.study, question.job ? &*question.job : nullptr);
  const StudyResult result = lockstep::tune::summarise(file.trials());
  if (!result.best) {
    throw Error(Blame::user, text(paths.root.string(), ": no trial is complete yet"), "let it run for longer");
  }
  const Json best =
      question.job
          ? spec::changed_json(spec::parse_job(spec::changed_json(*question.job), to_sets(space, result.best->values)))
          : settings_json(space, *result.best);
  base::give(arguments, best, best.dump() + "\n");
  return base::kExitDone;
}

// Everything that a later session, or another node, needs to go on alike.
void keep_documents(const Question& question) {
  const StudyPaths paths{question.folder};
  base::make_synced_folders(paths.root);
  Json study = spec::to_json(question.study);
  if (question.job) {
    study["job"] = "job.json";
    base::write_json(paths.job(), spec::changed_json(*question.job));
  }
  base::write_json(paths.study(), study);
}

int write_report(const base::Arguments& arguments, const Question& question) {
  const StudyPaths paths{question.folder};
  const lockstep::tune::StudyFile file = open_study(question);
  const auto space = lockstep::tune::make_space(question.study, question.job ? &*question.job : nullptr);
  const Json data = gather_study(question.study, space, file.trials());
  const base::Path out = arguments.value_or("--out", paths.report().string());
  base::write_file(out, render_study(data));
  base::give(arguments, data, out.string() + "\n");
  return base::kExitDone;
}

// Its name as plan --advise buy takes it: letters, digits and dashes.
std::string load_name(const std::vector<std::string>& program) {
  std::string name =
      base::Path(program.back().find('/') == std::string::npos ? program.front() : program.back()).stem();
  for (const auto& word : program) {
    if (base::Path(word).has_extension()) name = base::Path(word).stem();
  }
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_'; });
  return name.empty() ? "program" : name;
}

int measure_here(const base::Arguments& arguments, const lockstep::tune::PartitionOptions& options) {
  const int64_t count = arguments.int_or("--measure", 20);
  if (count < 1) throw Error(Blame::user, text("--measure ", count), "--measure 20");
  const auto cost = lockstep::tune::measure_program(options, count);
  const auto dimensions = static_cast<int64_t>(options.study.space.size());
  const int64_t regions = std::max<int64_t>(2, cost.labels);
  const int64_t evaluations = lockstep::tune::expected_evaluations(dimensions, options.study.partition, regions);
  const double hours = cost.seconds * static_cast<double>(evaluations) / 3600 / static_cast<double>(options.workers);
  char load[200];
  std::snprintf(load, sizeof load, "%s=%.4g@%lld", load_name(options.program).c_str(), hours,
                static_cast<long long>(options.workers));
  Json result = Json::object();
  result["seconds"] = cost.seconds;
  result["labels"] = cost.labels;
  result["evaluations"] = evaluations;
  result["hours"] = hours;
  result["cores"] = options.workers;
  result["cpu_load"] = load;
  base::make_synced_folders(options.folder);
  base::write_json(options.folder / "cpu_load.json", result);
  base::give(arguments, result,
             text(base::format_duration(cost.seconds), " an evaluation; about ", base::format_count(evaluations),
                  " of them for ", regions, " regions: ", base::format_duration(hours * 3600), " on ", options.workers,
                  " cores\nwhat would be bought for it: lockstep plan JOB --advise buy --cpu-load ", load, "\n"));
  return base::kExitDone;
}

int partition_here(const base::Arguments& arguments, const std::string& document) {
  lockstep::tune::PartitionOptions options;
  options.study = spec::load_study(document, arguments.values("--set"));
  options.folder = study_folder(options.study, arguments);
  options.program = arguments.positional;
  if (options.program.empty()) {
    throw Error(Blame::user, "which program?",
                text("lockstep tune --partition ", base::shell_path(document), " -- ./simulate {",
                     options.study.space.front().key, "}"));
  }
  options.workers = arguments.int_or("--workers", site::usable_cores());
  if (options.workers < 1 || options.workers > 1000) {
    throw Error(Blame::user, text("--workers ", options.workers), "1 to 1000");
  }
  if (arguments.has("--measure")) return measure_here(arguments, options);
  const run::StopSignals signals(run::Acknowledge::on_stderr);
  const auto left = site::seconds_left();
  const double begun = base::steady_seconds();
  options.stop = [&] {
    constexpr double kReserve = 10;
    const bool over = left && base::steady_seconds() - begun > static_cast<double>(left->count()) - kReserve;
    return over ? std::string("walltime") : signals.name();
  };
  base::Progress progress(base::progress_for_stderr());
  options.show = [&](const std::string& line) { progress.show(line); };
  const auto result = lockstep::tune::run_partition(options);
  progress.end();
  if (!result.partitioned) {
    std::fprintf(stderr, "stopped (%s) after %lld more points: the same command goes on\n", result.stopped.c_str(),
                 static_cast<long long>(result.evaluated));
    return base::kExitRequeue;
  }
  const auto space = lockstep::tune::make_space(options.study, nullptr);
  const Json data = gather_partition(options.study, space, *result.partitioned);
  const base::Path out = arguments.value_or("--out", (options.folder / "partition.html").string());
  base::write_file(out, render_partition(data));
  base::write_json(options.folder / "partition.json", data);
  std::string words = partition_text(data);
  for (const auto& trouble : result.troubles) words += text("  no label: ", trouble, "\n");
  base::give(arguments, data, words + text("look at them: ", out.string(), "\n"));
  return base::kExitDone;
}

int tune_here(const base::Arguments& arguments, const Question& question) {
  StudyOptions options;
  options.study = question.study;
  options.job = question.job;
  options.folder = question.folder;
  options.program.assign(arguments.positional.begin() + 1, arguments.positional.end());
  options.lockstep = std::filesystem::read_symlink("/proc/self/exe").string();
  options.device = arguments.value_or("--device", "cpu");
  if (options.job && !options.program.empty()) {
    throw Error(Blame::user, "the study names a job, and a program stands behind --", "keep one of the two");
  }
  if (!options.job && options.program.empty()) {
    throw Error(Blame::user, "nothing to tune: the study names no job, and no program stands behind --",
                "\"job\": \"job.json\" in the study, or: lockstep tune STUDY -- ./program {x}");
  }
  if (options.job && options.job->data.validate.empty()) {
    throw Error(Blame::user, text("objective '", question.study.objective, "': the job validates on nothing"),
                "data.validate of the job names the samples by which settings are compared");
  }
  if (!options.program.empty()) check_program(options.study, options.program);
  choose_workers(arguments, options);
  lockstep::tune::make_space(options.study,
                             options.job ? &*options.job : nullptr);  // refuses before anything is written
  keep_documents(question);
  if (options.job && !arguments.has("--no-plan")) options.plan = planner(options);
  if (const auto left = site::seconds_left()) options.seconds_left = static_cast<double>(left->count());
  const run::StopSignals signals(run::Acknowledge::on_stderr);
  options.stop = [&] { return signals.name(); };
  base::Progress progress(base::progress_for_stderr());
  options.say = [&](const std::string& line) { progress.print(line); };
  const StudyResult result = run_study(options);
  progress.end();
  const auto space = lockstep::tune::make_space(question.study, question.job ? &*question.job : nullptr);
  base::give(arguments, result_json(result, space, question.folder), result_text(result, space, question.folder));
  if (!result.stopped.empty()) {
    std::fprintf(stderr, "stopped (%s): the same command goes on\n", result.stopped.c_str());
    return base::kExitRequeue;
  }
  return base::kExitDone;
}

}  // namespace

LOCKSTEP_VERB(tune)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(tune_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(tune_line()).c_str(), stdout), base::kExitDone;
  if (const auto document = arguments.value("--partition")) {
    site::refuse_on_login_node("tune", words, arguments.has("--here"), std::chrono::hours(24));
    return partition_here(arguments, *document);
  }
  const Question question = read_question(arguments);
  if (arguments.has("--report")) return write_report(arguments, question);
  if (arguments.has("--best")) return print_best(arguments, question);
  site::refuse_on_login_node("tune", words, arguments.has("--here"), std::chrono::hours(24));
  return tune_here(arguments, question);
}

}  // namespace lockstep::verbs::tune
