// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/chain/chain.h"
#include "lockstep/chain/prepare.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/manners.h"
#include "lockstep/site/nvml.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/spec/workflow_rules.h"
#include "lockstep/tune/share.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/verbs/workflow/report.h"
#include "lockstep/workflow/digest.h"
#include "lockstep/workflow/queue.h"
#include "lockstep/workflow/workflow_run.h"

namespace lockstep::verbs::workflow {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using lockstep::workflow::RunResult;
using lockstep::workflow::StageOutcome;
using lockstep::workflow::StatePaths;

const base::CommandLine& workflow_line() {
  static const base::CommandLine line{
      "workflow",
      "run|plan|status|report|cancel WORKFLOW",
      "workflow.json -> every stage that is out of date, in order, here or as jobs; its timeline and Amdahl sum",
      {{"--to", "DIR", "the workflow's state (default <name>.workflow beside the document)"},
       {"--set", "KEY=VALUE", "override a key of the workflow: --set stages.train.resources.gpus=4; may be repeated"},
       {"--again", "STAGE", "run, here: this stage although it is up to date; may be repeated"},
       {"--on", "MACHINE", "run: a job a stage in the queue of this machine (catalogue or machine.json; here)"},
       {"--site", "KEY=VALUE", "with --on: override a key of the machine; may be repeated"},
       {"--dry-run", "", "with --on: print the scripts, submit nothing"},
       {"--stage", "NAME", "for the jobs of --on: this stage alone"},
       {"--gpus", "N,...", "plan, report: numbers of GPUs for the Amdahl sum"},
       {"--out", "FILE", "report: where the page goes; default DIR/report.html"},
       {"--here", "", "run: also on a login node"},
       {"--json", "FILE", "the result as JSON (- = standard output)"}},
      "A stage runs when its command, the content of what it reads, or what it wrote has changed; docs/workflow.md.\n"
      "Paths and commands are relative to the document's folder. Exit code 85: stopped, the same command goes on.\n"
      "examples: lockstep workflow run examples/shapes_workflow.json\n"
      "          lockstep workflow status examples/shapes_workflow.json\n"
      "          lockstep workflow run workflow.json --on site.json\n"
      "          lockstep workflow plan examples/radar/workflow.json"};
  return line;
}

struct Question {
  spec::Workflow workflow;
  base::Path document;  // absolute
  StatePaths paths;
};

// From here on the document's folder is the current one: all paths of the workflow are relative to it.
Question read_question(const base::Arguments& arguments) {
  if (arguments.positional.size() < 2) {
    throw Error(Blame::user, "which workflow?",
                "lockstep workflow run workflow.json; `lockstep explain workflow` says what is in it");
  }
  if (arguments.positional.size() > 2) {
    throw Error(Blame::user, text("one workflow is expected, '", arguments.positional[2], "' is one more"),
                "leave it out");
  }
  Question question;
  const base::Path named = arguments.positional[1];
  question.workflow = spec::load_workflow(named, arguments.values("--set"));
  question.document = std::filesystem::canonical(named);
  const base::Path folder = question.document.parent_path();
  const base::Path state = arguments.has("--to") ? std::filesystem::absolute(*arguments.value("--to"))
                                                 : folder / text(question.workflow.name, ".workflow");
  question.paths.root = spec::stage_path(state.string());
  std::filesystem::current_path(folder);
  return question;
}

std::vector<int64_t> numbers_of(const base::Arguments& arguments) {
  std::vector<int64_t> all;
  const auto words = arguments.value("--gpus");
  for (const auto& word : words ? base::split(*words, ',') : std::vector<std::string>{}) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 1) {
      throw Error(Blame::user, text("--gpus: '", word, "' is not a count of 1 or more"), "--gpus 8,16");
    }
    all.push_back(number);
  }
  return all;
}

struct View {
  std::vector<StageState> states;
  lockstep::workflow::Timeline timeline;
  lockstep::workflow::Amdahl amdahl;
  Json data;
};

View look(const base::Arguments& arguments, const Question& question) {
  View view;
  std::optional<base::TemporaryFolder> elsewhere;
  // Looking leaves nothing behind where nothing has run.
  if (!base::is_there(question.paths.root)) elsewhere.emplace();
  lockstep::workflow::Digests digests(elsewhere ? elsewhere->path() / "digests.jsonl" : question.paths.digests());
  const auto plans = lockstep::workflow::plan_stages(question.workflow, question.paths, digests);
  view.states = stage_states(question.workflow, question.paths, plans, lockstep::workflow::read_queue(question.paths));
  view.timeline = lockstep::workflow::make_timeline(question.workflow, question.paths);
  view.amdahl = lockstep::workflow::spread_stage(question.workflow, view.timeline, numbers_of(arguments));
  view.data = gather_workflow(question.workflow, view.states, view.timeline, view.amdahl);
  return view;
}

int show_plan(const base::Arguments& arguments) {
  const Question question = read_question(arguments);
  const View view = look(arguments, question);
  base::give(arguments, view.data,
             text(question.workflow.name, "\n", states_text(question.workflow, view.states), "\n",
                  to_text(view.timeline), "\n", to_text(view.amdahl)));
  return base::kExitDone;
}

int show_status(const base::Arguments& arguments) {
  const Question question = read_question(arguments);
  const View view = look(arguments, question);
  base::give(
      arguments, view.data,
      text(question.workflow.name, "\n", states_text(question.workflow, view.states), "\n", to_text(view.timeline)));
  return base::kExitDone;
}

int write_report(const base::Arguments& arguments) {
  base::Path out = arguments.value_or("--out", "");
  if (!out.empty()) out = std::filesystem::absolute(out);
  const Question question = read_question(arguments);
  const View view = look(arguments, question);
  if (out.empty()) {
    base::make_folders(question.paths.root);
    out = question.paths.report();
  }
  base::write_file(out, render_workflow(view.data));
  base::give(arguments, view.data, out.string() + "\n");
  return base::kExitDone;
}

int cancel(const base::Arguments& arguments) {
  const Question question = read_question(arguments);
  const auto jobs = lockstep::workflow::cancel_stages(question.paths);
  Json result = Json::object();
  result["cancelled"] = Json::array_of(jobs);
  base::give(arguments, result,
             jobs.empty() ? "no job of it was in the queue\n" : text("cancelled ", base::join(jobs, ", "), "\n"));
  return base::kExitDone;
}

const char* outcome_word(StageOutcome::What what) {
  static constexpr const char* kWords[] = {"waiting", "up to date", "ran", "failed", "stopped", "blocked"};
  return kWords[static_cast<size_t>(what)];
}

Json result_json(const Question& question, const RunResult& result) {
  Json all = Json::object();
  all["name"] = question.workflow.name;
  all["state"] = question.paths.root.string();
  all["stopped"] = result.stopped;
  Json& rows = all["stages"] = Json::array();
  for (size_t i = 0; i < result.stages.size(); ++i) {
    Json row = Json::object();
    row["name"] = question.workflow.stages[i].name;
    row["outcome"] = outcome_word(result.stages[i].what);
    row["seconds"] = result.stages[i].seconds;
    row["why"] = result.stages[i].why;
    rows.push_back(std::move(row));
  }
  return all;
}

std::string result_text(const Question& question, const RunResult& result) {
  using What = StageOutcome::What;
  std::string words = question.workflow.name;
  const char* separator = ": ";
  for (const auto& [what, name] : {std::pair{What::ran, "ran"},
                                   {What::up_to_date, "up to date"},
                                   {What::failed, "failed"},
                                   {What::stopped, "stopped"},
                                   {What::blocked, "blocked"}}) {
    if (const int64_t count = result.count(what); count > 0) {
      words += text(separator, count, " ", name);
      separator = ", ";
    }
  }
  return text(words, "\n", to_text(lockstep::workflow::make_timeline(question.workflow, question.paths)));
}

// Whoever must act on a failure of one of our own verbs says so by its exit code.
[[noreturn]] void throw_failure(const Question& question, size_t stage, const StageOutcome& failed) {
  const spec::Stage& which = question.workflow.stages[stage];
  const bool own_verb = which.command.empty() && which.copy.empty();
  const Blame blame = own_verb && failed.code == 3   ? Blame::machine
                      : own_verb && failed.code == 4 ? Blame::bug
                                                     : Blame::user;
  throw Error(blame, text("stage '", which.name, "' failed: ", failed.why),
              text("its log: ", question.paths.log(which.name).string(),
                   "; what is done stays done: the same command goes on from there"));
}

int run_here(const base::Arguments& arguments, const std::vector<std::string>& words) {
  const Question question = read_question(arguments);
  const std::string only = arguments.value_or("--stage", "");
  if (!only.empty()) question.workflow.find(only);
  for (const auto& stage : arguments.values("--again")) question.workflow.find(stage);
  site::refuse_on_login_node("workflow", words, arguments.has("--here"));
  if (only.empty()) {
    const auto queue = lockstep::workflow::read_queue(question.paths);
    for (const auto& stage : question.workflow.stages) {
      const auto* live = queue ? queue->live(stage.name) : nullptr;
      if (!live) continue;
      throw Error(
          Blame::user, text("stage '", stage.name, "' is in the queue: job ", live->job, " is ", live->seen->said),
          text("lockstep workflow status ", base::shell_path(question.document.string()), ", or cancel it first"));
    }
  }
  const run::StopSignals signals(run::Acknowledge::on_stderr);
  base::Progress progress(base::progress_for_stderr());
  lockstep::workflow::RunOptions options;
  options.workflow = question.workflow;
  options.document = question.document;
  options.state = question.paths.root;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  options.cores = lockstep::tune::own_cores();
  options.gpus = site::usable_gpus();
  options.again = arguments.values("--again");
  options.only = only;
  options.here = arguments.has("--here");
  options.stop = [&] { return signals.received(); };
  options.say = [&](std::string_view line) { progress.print(line); };
  const RunResult result = run_workflow(options);
  progress.end();
  if (only.empty()) {
    const View view = look(arguments, question);
    base::write_file(question.paths.report(), render_workflow(view.data));
  }
  base::give(
      arguments, result_json(question, result),
      only.empty() ? text(result_text(question, result), "  page: ", question.paths.report().string(), "\n") : "");
  size_t stage = 0;
  if (const StageOutcome* failed = result.first_failure(&stage)) throw_failure(question, stage, *failed);
  // Not 85 in a queue: Slurm would requeue this job where the site has it so, and its successor would run too.
  if (result.stopped) return only.empty() ? base::kExitRequeue : chain::kExitNextLink;
  return base::kExitDone;
}

// Each stage is a job that looks for itself whether it has to run.
void refuse_options_of_one_stage(const base::Arguments& arguments) {
  if (arguments.has("--stage")) {
    throw Error(Blame::user, "--stage with --on: the jobs of --on are given it, each its own",
                "leave it out: what is up to date gets no job");
  }
  if (arguments.has("--again")) {
    const std::string stage = arguments.values("--again").front();
    throw Error(Blame::user, text("--again ", stage, " with --on: a job runs its stage only when it is out of date"),
                text("remove what stage '", stage, "' wrote, then leave --again out"));
  }
}

int run_in_queue(const base::Arguments& arguments, const std::string& machine) {
  refuse_options_of_one_stage(arguments);
  site::forget_manners();  // jobs inherit the environment of who submits them
  const auto catalogue = catalogue::load_catalogue();
  lockstep::workflow::QueueRequest request;
  request.machine = chain::find_machine(machine, arguments.values("--site"), catalogue);
  const Question question = read_question(arguments);
  request.workflow = question.workflow;
  request.sets = arguments.values("--set");
  request.document = question.document;
  request.folder = question.document.parent_path();
  request.state = question.paths.root;
  request.program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> notes;
  request.say = [&](const std::string& note) { notes.push_back(note); };
  const bool dry = arguments.has("--dry-run");
  const auto jobs = dry ? lockstep::workflow::dry_run(request) : lockstep::workflow::queue_stages(request);
  Json result = Json::object();
  result["name"] = question.workflow.name;
  result["state"] = question.paths.root.string();
  Json& rows = result["jobs"] = Json::array();
  std::string shown;
  for (const auto& job : jobs) {
    Json row = Json::object();
    row["stage"] = job.stage;
    row["job"] = job.job;
    row["script"] = dry ? job.script : "";
    rows.push_back(std::move(row));
    shown += dry ? text("# stage ", job.stage, "\n", job.script, "\n")
                 : text(job.stage, ": ", job.script == "kept" ? "has" : "queued", " job ", job.job, "\n");
  }
  if (jobs.empty()) shown = "everything is up to date\n";
  result["notes"] = Json::array_of(notes);
  for (const auto& note : notes) shown += text("  ", note, "\n");
  const std::string document = question.document.string();
  if (!dry && !jobs.empty()) {
    shown += text("watch: lockstep workflow status ", base::shell_path(document), "\nend:   lockstep workflow cancel ",
                  base::shell_path(document), "\n");
  }
  base::give(arguments, result, shown);
  return base::kExitDone;
}

int run(const base::Arguments& arguments, const std::vector<std::string>& words) {
  if (const auto machine = arguments.value("--on")) return run_in_queue(arguments, *machine);
  if (arguments.has("--dry-run")) throw Error(Blame::user, "--dry-run is for --on", "lockstep workflow plan WORKFLOW");
  return run_here(arguments, words);
}

}  // namespace

LOCKSTEP_VERB(workflow)(const std::vector<std::string>& words) {
  base::Arguments arguments = base::parse_arguments(workflow_line(), words);
  arguments.make_absolute("--json");  // it goes to the document's folder
  if (arguments.has("--help")) return std::fputs(base::help_text(workflow_line()).c_str(), stdout), 0;
  const std::string what = arguments.positional.empty() ? "" : arguments.positional.front();
  if (what == "run") return run(arguments, words);
  if (what == "plan") return show_plan(arguments);
  if (what == "status") return show_status(arguments);
  if (what == "report") return write_report(arguments);
  if (what == "cancel") return cancel(arguments);
  throw Error(Blame::user, what.empty() ? "what is to be done?" : text("workflow has no '", what, "'"),
              what.empty() ? "lockstep workflow run workflow.json"
                           : base::did_you_mean(what, {"run", "plan", "status", "report", "cancel"}));
}

}  // namespace lockstep::verbs::workflow
