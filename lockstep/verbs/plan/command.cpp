// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "lockstep/advice/advise.h"
#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/document.h"
#include "lockstep/planning/kept_traces.h"
#include "lockstep/planning/markdown.h"
#include "lockstep/planning/plan.h"
#include "lockstep/planning/request.h"
#include "lockstep/planning/table.h"
#include "lockstep/planning/wording.h"
#include "lockstep/verbs/plan/simulated_tracer.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/web/page.h"

namespace lockstep::verbs::plan {
namespace {

using base::Blame;
using base::Error;
using base::text;

const base::CommandLine& plan_line() {
  static const base::CommandLine line{
      "plan",
      "[JOB]",
      "what a job will need, which machine, how long, how much: before the queue",
      {{"--on", "MACHINES",
        "GPUs, machines, processors of the catalogue; 8GB: any GPU of that; machine.json; here, cpu, all"},
       {"--gpus", "N,N...", "how many GPUs; default 1, and of a machine also a whole node"},
       {"--set", "KEY=VALUE", "override a key of the job; may be repeated"},
       {"--json", "FILE", "the plan as JSON (- = standard output, without the text)"},
       {"--report", "FILE", "a page about it: FILE.html or FILE.md; may be repeated"},
       {"--save-job", "FILE", "the job with what makes it fastest"},
       {"--samples", "N", "training samples, where the data are not here"},
       {"--validation-samples", "N", "likewise"},
       {"--assume", "KEY=VALUE", "what no document says: start_up, pue, kwh, inter_rate, ...; may be repeated"},
       {"--no-search", "", "only the job as written, no other micro-batch, precision or recomputation"},
       {"--levers", "LIST", "what the search may turn, of precision,micro_batch,recompute,zero; default all"},
       {"--recording", "FILE", "plan a recorded step instead of a job; with --samples and --epochs, or --steps"},
       {"--batch", "N", "samples of a recorded step, where the recording does not say"},
       {"--epochs", "N", "of a recording"},
       {"--steps", "N", "of a recording"},
       {"--save-recording", "FILE", "write the traced step"},
       {"--advise", "WHAT", text("an answer instead of a table: ", base::join(advice::advice_names(), ", "))},
       {"--budget", "MONEY", "buy: what may be spent, 9800GBP"},
       {"--jobs", "JOB,JOB...", "buy: what the machine is for"},
       {"--cpu-load", "NAME=HOURS@CORES", "buy: a program's time on that many cores; NAME=3@16x2.4GHz; repeatable"},
       {"--parts", "LIST", "buy: only the parts of that list of the catalogue, for example 2021"},
       {"--prices", "FILE.csv", "buy, rent: your own prices (docs/formats/prices.md)"},
       {"--exchange", "GBP=RATE", "buy: what one GBP of the catalogue costs in the budget's currency"},
       {"--against", "PARTS", "buy: your own list beside ours: rtx3090*2,threadripper-3970x,..."},
       {"--life", "YEARS", "buy, rent: years of use; default 3 and 5"},
       {"--hours-per-week", "HOURS", "buy, rent: how long it computes; default 40"},
       {"--beside", "FILE.json", "cpu-or-gpu, buy: somebody's own figures, to be compared"}},
      "Nothing is trained and no GPU is needed: the job's own step runs on a simulated GPU.\n"
      "Exit codes: 0 some option fits and ends, 3 none does.\n"
      "examples: lockstep plan job.json --on all --report plan.html\n"
      "          lockstep plan job.json --advise cpu-or-gpu\n"
      "          lockstep plan --advise buy --budget 9800GBP --jobs a.json,b.json\n"
      "          lockstep plan examples/resnet50.json --on a100-80,v100-32,minotauro --gpus 1,4"};
  return line;
}

// Columns of the terminal; 100 where there is none.
int64_t columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return std::min<int64_t>(size.ws_col, 120);
  return 100;
}

void write_report(const std::string& file, const planning::Plan& plan, const base::Json& document) {
  if (file.ends_with(".md")) return base::write_file(file, to_markdown(plan));
  if (file.ends_with(".html")) {
    return base::write_file(file, web::render_page("plan", document.string_or("name", "plan"), document));
  }
  throw Error(Blame::user, text("--report ", file, ": which kind of page?"), "FILE.html or FILE.md");
}

void check_report_names(const base::Arguments& arguments) {
  for (const auto& file : arguments.values("--report")) {
    if (file.ends_with(".md") || file.ends_with(".html")) continue;
    throw Error(Blame::user, text("--report ", file, ": which kind of page?"), "FILE.html or FILE.md");
  }
}

void deliver(const base::Arguments& arguments, const planning::Plan& plan) {
  const base::Json document = planning::to_json(plan);
  for (const auto& file : arguments.values("--report")) write_report(file, plan, document);
  if (const auto file = arguments.value("--save-job")) {
    if (plan.best.fastest < 0) {
      throw Error(Blame::machine, "no option fits: there is no job to save", "other machines, or a smaller network");
    }
    base::write_json(
        *file, spec::changed_json(planning::changed_job(plan, plan.options[static_cast<size_t>(plan.best.fastest)])));
  }
  if (const auto file = arguments.value("--save-recording")) forecast::write_recording(*file, *plan.recording);
  base::give(arguments, document, to_text(plan, columns()));
  std::fflush(stdout);  // what is wrong stands below it
}

// No job that was asked for can ever advance: that is for the user to change, not for a bigger machine.
void check_ending(const planning::Plan& plan) {
  if (plan.best.fastest >= 0) return;
  for (const auto& option : plan.options) {
    if (option.trial.refusal) throw Error(*option.trial.refusal);
  }
  for (const auto& option : plan.options) {
    if (!option.trial.fits || !option.length || option.length->jobs > 0) continue;
    const bool own = plan.job.limits.walltime > 0;
    const auto reason = std::find_if(option.why.begin(), option.why.end(),
                                     [](const std::string& why) { return why.starts_with("a walltime of"); });
    throw Error(Blame::user, *reason,
                own ? "a longer limits.walltime, or --assume start_up=... where it starts faster"
                    : "a longer scheduler.walltime, or --assume start_up=... where it starts faster");
  }
  for (const auto& option : plan.options) {
    if (!option.trial.fits || option.host_fits()) continue;
    throw Error(Blame::machine,
                text("it fits the GPUs of ", planning::label_of(option), ", but not the main memory of a node: ",
                     base::format_bytes(static_cast<double>(option.host.total)), " of ",
                     base::format_bytes(static_cast<double>(option.machine_option.machine.memory_per_node))),
                "fewer GPUs a node, a smaller data.memory, or a node with more memory");
  }
  for (const auto& option : plan.options) {
    if (!option.trial.fits || option.trial.time) continue;
    if (option.machine_option.only_memory) return;  // whether it fits was all that was asked
    throw Error(Blame::machine,
                text("it fits ", planning::label_of(option), ", but its speed is not known: ", option.trial.no_time),
                "complete the GPU's row in ~/.config/lockstep/catalogue/gpus.json, or ask for another");
  }
  throw Error(Blame::machine, text("none of the ", plan.options.size(), " options fits"),
              "a GPU with more memory, a smaller data.image_size or network: --on all shows every GPU");
}

void deliver_advice(const base::Arguments& arguments, const advice::Advice& advice) {
  for (const auto& file : arguments.values("--report")) advice::write_paper(file, advice.paper);
  base::give(arguments, advice.document, to_text(advice.paper));
}

}  // namespace

// The step runs on a simulated GPU, which changes libtorch for good: nothing in this process opens real CUDA.
LOCKSTEP_VERB(plan)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(plan_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(plan_line()).c_str(), stdout), 0;
  check_report_names(arguments);
  const auto catalogue = catalogue::load_catalogue();
  SimulatedTracer tracer;
  if (const auto what = arguments.value("--advise")) {
    const auto calibration = forecast::load_calibration();
    planning::KeptTraces kept(&tracer);  // advice makes several plans
    return deliver_advice(arguments, advice::advise(*what, {arguments, catalogue, calibration, &kept})), 0;
  }
  planning::PlanRequest request = planning::request_of(arguments, catalogue);
  request.tracer = &tracer;
  const planning::Plan plan = planning::make_plan(request, catalogue, forecast::load_calibration());
  deliver(arguments, plan);
  check_ending(plan);
  return 0;
}

}  // namespace lockstep::verbs::plan
