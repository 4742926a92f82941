// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "lockstep/base/arguments.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/link.h"
#include "lockstep/chain/status.h"
#include "lockstep/chain/submit.h"
#include "lockstep/remote/away.h"
#include "lockstep/site/manners.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::submit {
namespace {

using base::Blame;
using base::Error;
using base::text;
using chain::Candidate;
using chain::Prepared;
using chain::Queued;
using chain::SubmitRequest;

const base::CommandLine& submit_line() {
  static const base::CommandLine line{
      "submit",
      "[JOB | -- predict RUN IMAGES... | -- tune STUDY]",
      "job + machine -> the chain of Slurm or PBS jobs, submitted and watched",
      {{"--on", "MACHINE", "a machine of the catalogue, or machine.json; default here: what doctor finds"},
       {"--site", "KEY=VALUE", "override a key of the machine: --site scheduler.account=abc; may be repeated"},
       {"--run", "DIR", "the run folder (default runs/<name of the job>); a run in it goes on"},
       {"--set", "KEY=VALUE", "override a key of the job; may be repeated"},
       {"--nodes", "N", "nodes of each job (default 1); with --earliest several: 1,2,4"},
       {"--ranks-per-node", "N", "default: one a GPU, or one a processor package"},
       {"--device", "NAME", "cpu or cuda; default cuda where the machine has GPUs"},
       {"--walltime", "TIME",
        "of each job, 24:00:00; default: the limit of job or machine, less where the plan is short"},
       {"--links", "N", "jobs expected, in place of the plan's number"},
       {"--max-links", "N", "the chain ends after so many jobs, whatever happens"},
       {"--patience", "K", "it ends after so many jobs in a row without a new step; default 3"},
       {"--earliest", "", "of the shapes in --nodes submit the one that ends first, by the scheduler and the plan"},
       {"--hours", "N=H,...", "run time by nodes where plan cannot say: 1=2.5,2=1.4"},
       {"--no-plan", "", "do not ask lockstep plan how long it takes"},
       {"--dry-run", "", "print the script, submit nothing"},
       {"--via", "LOGIN",
        "from a laptop: submit on this login node, by ssh and rsync: user@login, ssh://user@login:2222"},
       {"--folder", "DIR", "with --via: where job and data go there; default lockstep/<name of the run>"},
       {"--program", "PATH", "with --via: lockstep there; default: the one on PATH"},
       {"--most", "BYTES", "with --via: copy data of up to this size; default 2GB"},
       {"--fetch", "RUN", "of a run elsewhere: bring it here with its weights, without checkpoints"},
       {"--status", "RUN", "where a chain stands; the scheduler is asked once a minute at most"},
       {"--cancel", "RUN", "end a chain: no link goes on, its jobs leave the queue"},
       {"--link", "RUN", "for the script: run the command behind -- as one link of the chain"},
       {"--json", "FILE", "the result as JSON (- = standard output)"}},
      "A chain: each job trains until shortly before its walltime, saves, and the next goes on; docs/submit.md.\n"
      "So does a collection that is predicted; its --status and --cancel take FILE.files for the run; and a study, "
      "whose\n"
      "folder they take. --ranks-per-node says how many of its trials run at once on a node.\n"
      "With --via the run is there: --status, --cancel, `watch RUN` and `report RUN` here ask or fetch by themselves.\n"
      "examples: lockstep submit job.json --on site.json --nodes 1,2,4 --earliest\n"
      "          lockstep submit job.json --on site.json --via ada@login.example.org\n"
      "          lockstep submit --status runs/pets\n"
      "          lockstep submit --on site.json --nodes 2 -- predict runs/pets collection --to found.jsonl\n"
      "          lockstep submit --on site.json --walltime 4:00:00 -- tune study.json\n"
      "          lockstep submit examples/shapes.json --on minotauro --site scheduler.kind=slurm --device cpu "
      "--dry-run"};
  return line;
}

int64_t count_of(const std::string& word, const std::string& option) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 1) {
    throw Error(Blame::user, text(option, ": '", word, "' is not a count of 1 or more"), text(option, " 4"));
  }
  return value;
}

int64_t count_in(const base::Arguments& arguments, const std::string& option, int64_t otherwise) {
  const auto word = arguments.value(option);
  return word ? count_of(*word, option) : otherwise;
}

double walltime_of(const std::string& word) {
  double seconds = 0;
  try {
    seconds = base::parse_duration(word);
  } catch (const Error& error) {
    throw Error(Blame::user, text("--walltime: ", error.what()), text("--walltime 24:00:00; ", error.fix()));
  }
  if (seconds <= 0) throw Error(Blame::user, text("--walltime ", word), "--walltime 24:00:00");
  return seconds;
}

// One spelling of a path, from which the chain's jobs have their name.
base::Path folder_named(const std::string& word) {
  base::Path path = std::filesystem::absolute(word).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// A job that is trained, a collection that is predicted, or a study.
void read_work(const base::Arguments& arguments, SubmitRequest& request) {
  const auto& words = arguments.positional;
  if (words.empty() || (words.front() != "predict" && words.front() != "tune")) {
    request.job = weights::load_job(arguments.only("job document"), arguments.values("--set")).job;
    request.run = folder_named(arguments.value_or("--run", text("runs/", request.job.name)));
    return;
  }
  for (const char* option : {"--run", "--set", "--hours", "--earliest"}) {
    if (arguments.has(option)) throw Error(Blame::user, text(option, " is for a job that is trained"), "leave it out");
  }
  request.work = words;
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  request.run = words.front() == "tune" ? chain::study_folder(rest) : chain::collection_folder(rest);
}

SubmitRequest request_of(const base::Arguments& arguments, const catalogue::Catalogue& catalogue) {
  SubmitRequest request;
  read_work(arguments, request);
  request.machine = chain::find_machine(arguments.value_or("--on", "here"), arguments.values("--site"), catalogue);
  request.folder = std::filesystem::current_path();
  request.program = std::filesystem::read_symlink("/proc/self/exe").string();
  request.device = arguments.value_or("--device", "");
  if (const auto nodes = arguments.value("--nodes")) {
    request.nodes.clear();
    for (const auto& word : base::split(*nodes, ',')) request.nodes.push_back(count_of(word, "--nodes"));
  }
  request.ranks_per_node = count_in(arguments, "--ranks-per-node", 0);
  if (const auto time = arguments.value("--walltime")) request.walltime = walltime_of(*time);
  request.links = count_in(arguments, "--links", 0);
  request.max_links = count_in(arguments, "--max-links", 0);
  request.patience = count_in(arguments, "--patience", request.patience);
  request.hours = arguments.value_or("--hours", "");
  request.plan = !arguments.has("--no-plan");
  request.earliest = arguments.has("--earliest");
  request.dry_run = arguments.has("--dry-run");
  return request;
}

base::Json candidate_json(const Candidate& candidate) {
  base::Json row = base::Json::object();
  row["nodes"] = candidate.script.shape.nodes;
  row["ranks"] = candidate.script.shape.ranks();
  row["walltime_seconds"] = candidate.script.shape.walltime;
  row["planned_seconds"] = candidate.planned.seconds > 0 ? base::Json(candidate.planned.seconds) : base::Json();
  row["planned_jobs"] = candidate.planned.jobs > 0 ? base::Json(candidate.planned.jobs) : base::Json();
  row["start"] = candidate.start ? base::Json(*candidate.start) : base::Json();
  row["end"] = candidate.end() ? base::Json(*candidate.end()) : base::Json();
  row["refusal"] = candidate.refusal;
  return row;
}

base::Json result_json(const SubmitRequest& request, const Prepared& prepared, const Queued& queued) {
  base::Json all = base::Json::object();
  all["run"] = request.run.string();
  all["name"] = prepared.terms.name;
  all["scheduler"] = site::name_of(prepared.terms.scheduler);
  all["submit_from"] = name_of(prepared.terms.submit_from);
  all["jobs"] = base::Json::array_of(queued.jobs);
  all["refusal"] = queued.refusal;
  all["planned_links"] = prepared.terms.planned_links;
  all["max_links"] = prepared.terms.max_links;
  all["candidates"] = base::Json::array();
  for (const auto& candidate : prepared.candidates) all["candidates"].push_back(candidate_json(candidate));
  all["chosen"] = prepared.chosen;
  all["script"] = prepared.script;
  all["notes"] = base::Json::array_of(prepared.notes);
  return all;
}

std::string candidates_text(const Prepared& prepared, double now) {
  base::Table table({{"nodes", base::Align::right},
                     {"ranks", base::Align::right},
                     {"starts in", base::Align::right},
                     {"runs", base::Align::right},
                     {"jobs", base::Align::right},
                     {"ends in", base::Align::right},
                     {""}});
  for (size_t i = 0; i < prepared.candidates.size(); ++i) {
    const Candidate& one = prepared.candidates[i];
    const auto in = [&](const std::optional<double>& time) {
      return time ? base::format_duration(std::max(0.0, *time - now)) : "-";
    };
    table.add({text(one.script.shape.nodes), text(one.script.shape.ranks()), in(one.start),
               one.planned.seconds > 0 ? base::format_duration(one.planned.seconds) : "-",
               one.planned.jobs > 0 ? text(one.planned.jobs) : "-", in(one.end()),
               i == prepared.chosen ? "<- ends first" : one.refusal});
  }
  return table.to_text();
}

std::string headline(const SubmitRequest& request, const Prepared& prepared) {
  const chain::Shape& shape = prepared.choice().script.shape;
  const chain::PlannedShape& planned = prepared.choice().planned;
  const int64_t links = prepared.terms.planned_links;
  return text(request.run.string(), ": ", shape.nodes, " node", shape.nodes == 1 ? "" : "s", " x ",
              shape.ranks_per_node, " rank", shape.ranks_per_node == 1 ? "" : "s", " on ", request.machine.name,
              ", jobs of ", chain::walltime_words(shape.walltime, request.machine.scheduler.kind),
              links > 0 ? text(", about ", links, " of them") : "",
              planned.seconds > 0 ? text(", ", base::format_duration(planned.seconds), " in all") : "", "\n");
}

std::string shortfall_text(const Queued& queued, int64_t wanted) {
  return text("\n", queued.jobs.size(), " of ", wanted,
              " links stand in the queue, the next was refused: ", queued.refusal,
              "\nwhen they are over, submit it again to go on");
}

int submit_job(const base::Arguments& arguments) {
  const auto catalogue = catalogue::load_catalogue();
  const SubmitRequest request = request_of(arguments, catalogue);
  remote::refuse_if_away(request.run);
  const Prepared prepared = chain::prepare(request, catalogue);
  std::string shown = headline(request, prepared);
  for (const auto& note : prepared.notes) shown += text("  ", note, "\n");
  if (request.earliest) shown += candidates_text(prepared, base::unix_seconds());
  Queued queued;
  const std::string shell_run = base::shell_path(request.run.string());
  if (request.dry_run) {
    shown += text("\n", prepared.script);
  } else {
    queued = chain::submit(request, prepared);
    const bool pbs = prepared.terms.scheduler == site::SchedulerName::pbs;
    const bool login = prepared.terms.submit_from == spec::SubmitFrom::login;
    shown +=
        text("queued job", queued.jobs.size() == 1 ? " " : "s ", base::join(queued.jobs, ", "),
             login && pbs ? "; those left over at the end are cancelled. End it by --cancel: qdel of one waiting link "
                            "ends all behind it"
             : login      ? "; those left over at the end are cancelled"
                          : text("; each queues the next, ", prepared.terms.max_links, " at most"),
             queued.refusal.empty() ? "" : shortfall_text(queued, prepared.queue_now),
             "\nwatch: lockstep submit --status ", shell_run, "\nend:   lockstep submit --cancel ", shell_run, "\n");
  }
  base::give(arguments, result_json(request, prepared, queued), shown);
  return base::kExitDone;
}

// What the program there says, as it is.
int show_relayed(const base::Arguments& arguments, const remote::Away& away, const std::string& option) {
  const std::vector<std::string> words{"submit", option, away.run};
  if (arguments.has("--json")) {
    base::give(arguments, remote::relay_json(away, words), "");
  } else {
    std::fputs(remote::relay(away, words).out.c_str(), stdout);
  }
  return base::kExitDone;
}

int fetch_run(const base::Arguments& arguments, const std::string& run) {
  const auto away = remote::read_away(run);
  if (!away) throw Error(Blame::user, text(run, " was not submitted with --via: it is here"), "lockstep report RUN");
  remote::fetch(*away, run, remote::Fetch::everything);
  base::Json result = base::Json::object();
  result["run"] = run;
  result["from"] = remote::there(away->login, away->run);
  base::give(arguments, result, text(remote::there(away->login, away->run), " is in ", run, ", without checkpoints\n"));
  return base::kExitDone;
}

// What submit is told here and does there.
std::vector<std::string> options_for_there(const base::Arguments& arguments) {
  std::vector<std::string> words;
  for (const char* option :
       {"--nodes", "--ranks-per-node", "--device", "--walltime", "--links", "--max-links", "--patience", "--hours"}) {
    if (const auto value = arguments.value(option)) words.insert(words.end(), {option, *value});
  }
  for (const char* option : {"--earliest", "--no-plan", "--dry-run"}) {
    if (arguments.has(option)) words.emplace_back(option);
  }
  for (const auto& site : arguments.values("--site")) words.insert(words.end(), {"--site", site});
  return words;
}

int submit_via(const base::Arguments& arguments, const std::string& login) {
  if (!arguments.positional.empty() && (arguments.positional[0] == "predict" || arguments.positional[0] == "tune")) {
    throw Error(Blame::user, text("--via is for a job that is trained, not for ", arguments.positional[0]),
                "log in there for it");
  }
  remote::SendRequest request;
  request.login = remote::parse_login(login);
  request.job = weights::load_job(arguments.only("job document"), arguments.values("--set")).job;
  request.machine = arguments.value_or("--on", "here");
  request.run = folder_named(arguments.value_or("--run", text("runs/", request.job.name)));
  request.folder = arguments.value_or("--folder", "");
  request.program = arguments.value_or("--program", "");
  request.most = base::parse_bytes(arguments.value_or("--most", "2GB"));
  request.options = options_for_there(arguments);
  request.say = [](std::string_view line) {
    std::fprintf(stderr, "lockstep submit: %.*s\n", static_cast<int>(line.size()), line.data());
  };
  const bool dry = arguments.has("--dry-run");
  const remote::Sent sent = remote::send(request);
  std::string shown;
  for (const auto& note : sent.answer.at("notes").items()) shown += text("  ", note.as_string(), "\n");
  std::vector<std::string> jobs;
  for (const auto& job : sent.answer.at("jobs").items()) jobs.push_back(job.as_string());
  const std::string shell_run = base::shell_path(request.run.string());
  shown += dry ? sent.answer.at("script").as_string()
               : text("queued job", jobs.size() == 1 ? " " : "s ", base::join(jobs, ", "), " on ",
                      request.login.destination, ", run ", sent.away.run, "\nwatch: lockstep submit --status ",
                      shell_run, ", lockstep watch ", shell_run, "\nend:   lockstep submit --cancel ", shell_run,
                      "\nthen:  lockstep report ", shell_run, ", lockstep submit --fetch ", shell_run, "\n");
  base::Json result = sent.answer;
  result["via"] = request.login.destination;
  result["run_there"] = sent.away.run;
  result["copied"] = base::Json::array_of(sent.copied);
  base::give(arguments, result, shown);
  return base::kExitDone;
}

int show_status(const base::Arguments& arguments, const std::string& run) {
  if (const auto away = remote::read_away(run)) return show_relayed(arguments, *away, "--status");
  const double now = base::unix_seconds();
  const chain::ChainStatus status = chain::read_status(std::filesystem::absolute(run), now);
  base::give(arguments, to_json(status, now), to_text(status, now));
  return base::kExitDone;
}

int cancel(const base::Arguments& arguments, const std::string& run) {
  if (const auto away = remote::read_away(run)) return show_relayed(arguments, *away, "--cancel");
  const auto jobs = chain::cancel_chain(folder_named(run));
  base::Json result = base::Json::object();
  result["cancelled"] = base::Json::array_of(jobs);
  base::give(arguments, result,
             jobs.empty() ? "no job of it was in the queue\n" : text("cancelled ", base::join(jobs, ", "), "\n"));
  return base::kExitDone;
}

int link(const base::Arguments& arguments, const std::string& run) {
  if (arguments.positional.empty()) {
    throw Error(Blame::user, "submit --link: which command?", "lockstep submit --link RUN -- lockstep train ...");
  }
  chain::LinkOptions options;
  options.run = chain::run_and_hand_on_signals;
  options.say = [](std::string_view line) {
    std::fprintf(stderr, "lockstep submit: %.*s\n", static_cast<int>(line.size()), line.data());
  };
  return chain::run_link(run, arguments.positional, options);
}

}  // namespace

LOCKSTEP_VERB(submit)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(submit_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(submit_line()).c_str(), stdout), 0;
  site::forget_manners();  // jobs inherit the environment of who submits them
  if (const auto run = arguments.value("--link")) return link(arguments, *run);
  if (const auto run = arguments.value("--status")) return show_status(arguments, *run);
  if (const auto run = arguments.value("--cancel")) return cancel(arguments, *run);
  if (const auto run = arguments.value("--fetch")) return fetch_run(arguments, *run);
  if (const auto login = arguments.value("--via")) return submit_via(arguments, *login);
  for (const char* option : {"--folder", "--program", "--most"}) {
    if (arguments.has(option)) throw Error(Blame::user, text(option, " is of --via"), "--via user@login");
  }
  return submit_job(arguments);
}

}  // namespace lockstep::verbs::submit
