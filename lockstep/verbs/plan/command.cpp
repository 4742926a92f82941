// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/verbs/plan/assumptions.h"
#include "lockstep/verbs/plan/document.h"
#include "lockstep/verbs/plan/markdown.h"
#include "lockstep/verbs/plan/places.h"
#include "lockstep/verbs/plan/plan.h"
#include "lockstep/verbs/plan/table.h"
#include "lockstep/verbs/report/report.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs {
namespace {

using base::Blame;
using base::Error;
using base::text;

const base::CommandLine& plan_line() {
  static const base::CommandLine line{
      "plan",
      "[JOB]",
      "what a job will need, which machine, how long, how much: before the queue",
      {{"--on", "PLACES", "cards, machines, processors of the catalogue; machine.json; here, cpu, all; with commas"},
       {"--gpus", "N,N...", "how many cards; default 1, and of a machine also a whole node"},
       {"--set", "KEY=VALUE", "override a key of the job; may be repeated"},
       {"--json", "FILE", "the plan as JSON (- = standard output, without the text)"},
       {"--report", "FILE", "a page about it: FILE.html or FILE.md; may be repeated"},
       {"--save-job", "FILE", "the job with what makes it fastest"},
       {"--samples", "N", "training samples, where the data are not here"},
       {"--validation-samples", "N", "likewise"},
       {"--assume", "KEY=VALUE", "what no document says: start_up, pue, kwh, inter_rate, ...; may be repeated"},
       {"--no-search", "", "only the job as written, no other micro-batch, precision or recomputation"},
       {"--recording", "FILE", "plan a recorded step instead of a job; with --samples and --epochs, or --steps"},
       {"--batch", "N", "samples of a recorded step, where the recording does not say"},
       {"--epochs", "N", "of a recording"},
       {"--steps", "N", "of a recording"},
       {"--save-recording", "FILE", "write the traced step"}},
      "examples: lockstep plan job.json --on a100-80,v100-32,minotauro --gpus 1,4\n"
      "          lockstep plan job.json --on all --report plan.html\n"
      "Nothing is trained and no GPU is needed: the job's own step runs on a simulated card.\n"
      "Exit codes: 0 some option fits and ends, 3 none does.\n"};
  return line;
}

int64_t whole_number(const std::string& word, const std::string& option, int64_t low) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < low) {
    throw Error(Blame::user, text(option, ": '", word, "' is not a count of ", low, " or more"), text(option, " 4"));
  }
  return value;
}

std::vector<std::string> words_of(const base::Arguments& arguments, const std::string& option) {
  std::vector<std::string> all;
  for (const auto& list : arguments.values(option)) {
    for (const auto& word : base::split(list, ',')) {
      if (!base::trim(word).empty()) all.emplace_back(base::trim(word));
    }
  }
  return all;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  return date;
}

// Columns of the terminal; 100 where there is none.
int64_t columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return std::min<int64_t>(size.ws_col, 120);
  return 100;
}

// A recorded step cannot be cut: --batch only tells how many samples it takes.
void fix_batch(forecast::Recording& recording, const std::string& file, int64_t batch) {
  const int64_t known = recording.micro_batch * recording.accumulation;
  if (known == 0 && batch == 0) {
    throw Error(Blame::user, text(file, " does not say how many samples its step takes"), "--batch N");
  }
  if (known > 0 && batch > 0 && batch != known) {
    throw Error(Blame::user, text("--batch ", batch, ": the step in ", file, " takes ", known, " samples"),
                "leave --batch out, or record the step anew with that many");
  }
  if (known > 0) return;
  recording.micro_batch = batch;
  recording.accumulation = 1;
}

// The length of a run that has no job stands on the command line.
spec::Job job_of_recording(const base::Arguments& arguments, const forecast::Recording& recording) {
  spec::Job job;
  job.name = recording.title;
  job.training.steps = arguments.has("--steps") ? whole_number(*arguments.value("--steps"), "--steps", 1) : 0;
  if (arguments.has("--epochs")) {
    job.training.epochs = static_cast<double>(whole_number(*arguments.value("--epochs"), "--epochs", 1));
    if (!arguments.has("--samples")) {
      throw Error(Blame::user, "--epochs without the samples of one", "--samples N");
    }
  }
  job.evaluation.every_epochs = 0;
  job.data.validate.clear();
  return job;
}

PlanRequest request_of(const base::Arguments& arguments, const catalogue::Catalogue& catalogue) {
  PlanRequest request;
  for (const auto& words : arguments.values("--assume")) assume(request.assumptions, words);
  const auto count = [&](const std::string& option) {
    return arguments.has(option) ? whole_number(*arguments.value(option), option, 1) : 0;
  };
  const int64_t samples = count("--samples");
  if (const auto file = arguments.value("--recording")) {
    if (!arguments.positional.empty()) {
      throw Error(Blame::user, "a recording stands instead of a job", text("leave out ", arguments.positional.front()));
    }
    request.recording = forecast::read_recording(*file);
    fix_batch(*request.recording, *file, count("--batch"));
    request.job = job_of_recording(arguments, *request.recording);
    request.lengths.samples = samples;
    if (request.job.training.steps == 0 && request.job.training.epochs == 0) {
      request.lengths.notes.emplace_back("hours, jobs and money need --steps N, or --samples N and --epochs E");
    }
  } else {
    request.job = spec::load_job(arguments.only("job document"), arguments.values("--set"));
    request.lengths = lengths_of(request.job, samples, count("--validation-samples"));
  }
  PlaceRequest places;
  places.on = words_of(arguments, "--on");
  if (places.on.empty()) {
    throw Error(Blame::user, "on which machine?", "--on a100-80,minotauro, --on here, or --on all");
  }
  for (const auto& word : words_of(arguments, "--gpus")) places.gpus.push_back(whole_number(word, "--gpus", 1));
  places.per_node = request.assumptions.per_node;
  places.here = [&] { return here_of(site::probe_site(), catalogue, today()); };
  request.places = places_of(places, catalogue);
  request.search = !arguments.has("--no-search");
  return request;
}

void write_report(const std::string& file, const Plan& plan, const base::Json& document) {
  if (file.ends_with(".md")) return base::write_file(file, to_markdown(plan));
  if (file.ends_with(".html")) {
    return base::write_file(file, render_page("plan", document.string_or("name", "plan"), document));
  }
  throw Error(Blame::user, text("--report ", file, ": which kind of page?"), "FILE.html or FILE.md");
}

void check_report_names(const base::Arguments& arguments) {
  for (const auto& file : arguments.values("--report")) {
    if (file.ends_with(".md") || file.ends_with(".html")) continue;
    throw Error(Blame::user, text("--report ", file, ": which kind of page?"), "FILE.html or FILE.md");
  }
}

void deliver(const base::Arguments& arguments, const Plan& plan) {
  const base::Json document = to_json(plan);
  for (const auto& file : arguments.values("--report")) write_report(file, plan, document);
  if (const auto file = arguments.value("--save-job")) {
    if (plan.best.fastest < 0) {
      throw Error(Blame::machine, "no option fits: there is no job to save", "other machines, or a smaller network");
    }
    base::write_json(*file,
                     spec::changed_json(changed_job(plan, plan.options[static_cast<size_t>(plan.best.fastest)])));
  }
  if (const auto file = arguments.value("--save-recording")) forecast::write_recording(*file, *plan.recording);
  const auto json = arguments.value("--json");
  if (json == "-") {
    std::fputs((document.dump() + "\n").c_str(), stdout);
    return;
  }
  if (json) base::write_json(*json, document);
  std::fputs(to_text(plan, columns()).c_str(), stdout);
  std::fflush(stdout);  // what is wrong stands below it
}

// No job that was asked for can ever advance: that is for the user to change, not for a bigger machine.
void check_ending(const Plan& plan) {
  if (plan.best.fastest >= 0) return;
  for (const auto& option : plan.options) {
    if (!option.trial.fits || !option.length || option.length->jobs > 0) continue;
    const bool own = plan.job.limits.walltime > 0;
    throw Error(Blame::user, option.why.back(),
                own ? "a longer limits.walltime, or --assume start_up=... where it starts faster"
                    : "a longer scheduler.walltime, or --assume start_up=... where it starts faster");
  }
  throw Error(Blame::machine, text("none of the ", plan.options.size(), " options fits"),
              "a card with more memory, a smaller data.image_size or network: --on all shows every card");
}

}  // namespace

// The step runs on a simulated card, which changes libtorch for good: nothing in this process opens real CUDA.
LOCKSTEP_VERB(plan)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(plan_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(plan_line()).c_str(), stdout), 0;
  check_report_names(arguments);
  const auto catalogue = catalogue::load_catalogue();
  const PlanRequest request = request_of(arguments, catalogue);
  const Plan plan = make_plan(request, catalogue, forecast::load_calibration());
  deliver(arguments, plan);
  check_ending(plan);
  return 0;
}

}  // namespace lockstep::verbs
