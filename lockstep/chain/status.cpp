// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/status.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/script.h"

namespace lockstep::chain {
namespace {

using base::Json;
using base::text;
using site::BatchJob;
using State = BatchJob::State;

const char* name_of_state(State state) {
  switch (state) {
    case State::waiting:
      return "waiting";
    case State::running:
      return "running";
    case State::ending:
      return "ending";
    case State::over:
      return "over";
  }
  return "over";
}

State state_of(const std::string& name) {
  for (const State state : {State::waiting, State::running, State::ending}) {
    if (name == name_of_state(state)) return state;
  }
  return State::over;
}

Json job_json(const BatchJob& job) {
  Json row = Json::object();
  row["job"] = job.id;
  row["state"] = name_of_state(job.state);
  row["said"] = job.said;
  row["reason"] = job.reason;
  row["start"] = job.start;
  row["end"] = job.end;
  row["nodes"] = job.on_nodes;
  return row;
}

Json queue_json(const QueueView& view) {
  Json all = Json::object();
  all["asked"] = view.asked;
  all["answered"] = view.answered;
  all["jobs"] = Json::array();
  for (const auto& job : view.jobs) all["jobs"].push_back(job_json(job));
  all["gone"] = Json::array_of(view.gone);
  all["gone_said"] = view.gone_said;
  all["gone_by_hand"] = view.gone_by_hand;
  all["last_ended"] = view.last_ended;
  all["memory_killed"] = view.memory_killed;
  all["signal"] = view.signal;
  return all;
}

base::Path queue_file(const base::Path& run) {
  return run / "queue.json";
}

QueueView kept_view(const base::Path& run) {
  QueueView view;
  try {
    const Json kept = base::read_json(queue_file(run));
    view.asked = kept.double_or("asked", 0);
    view.answered = kept.at("answered").as_bool();
    for (const auto& row : kept.at("jobs").items()) {
      view.jobs.push_back({row.string_or("job", ""), state_of(row.string_or("state", "")), row.string_or("said", ""),
                           row.string_or("reason", ""), row.string_or("start", ""), row.string_or("end", ""),
                           row.string_or("nodes", "")});
    }
    view.gone_said = kept.string_or("gone_said", "");
    view.last_ended = kept.string_or("last_ended", "");
    view.memory_killed = kept.string_or("memory_killed", "");
    view.signal = kept.int_or("signal", 0);
    if (const Json* by_hand = kept.find("gone_by_hand")) view.gone_by_hand = by_hand->as_bool();
    if (const Json* gone = kept.find("gone")) {
      for (const auto& job : gone->items()) view.gone.push_back(job.as_string());
    }
  } catch (const base::Error&) {
    return {};  // none kept, or not readable: ask
  }
  return view;
}

std::string name_of_signal(int64_t number) {
  const char* name = ::sigabbrev_np(static_cast<int>(number));
  return name ? text("SIG", name) : text("signal ", number);
}

std::string clock_words(double unix_seconds) {
  const auto time = static_cast<std::time_t>(std::llround(unix_seconds));
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S", &parts);
  return buffer;
}

// What PBS wrote about the end of a job: "job killed: walltime 10 exceeded limit 5".
std::string killed_for(const std::string& words) {
  constexpr std::string_view kPhrase = "PBS: job killed: ";
  const size_t at = words.find(kPhrase);
  return at == std::string::npos ? "" : words.substr(at + kPhrase.size(), words.find(';', at) - at - kPhrase.size());
}

std::string outcome(const ChainLink& link, const ChainStatus& status) {
  const bool memory = !status.queue.memory_killed.empty() && status.queue.last_ended == link.job;
  const std::string killed = killed_for(scheduler_words(status.run, status.chain.terms, link.job));
  if (memory || killed.starts_with("mem ") || killed.starts_with("vmem ")) return "killed for its memory";
  if (link.ended > 0 && link.code == 0) return "done";
  if (link.ended > 0 && link.code == base::kExitRequeue) return "stopped in time";
  if (link.ended > 0) return text("exit code ", link.code);
  // A later link begins only when this one is over.
  const bool last = link.job == status.chain.links.back().job;
  if (last && status.chain.over.empty() && !status.queue.answered) return "not known";
  const auto& jobs = status.queue.jobs;
  const bool runs =
      std::any_of(jobs.begin(), jobs.end(), [&](const BatchJob& job) { return job.id == link.job && job.active(); });
  if (runs) return "running";
  const bool told = status.queue.signal > 0 && status.queue.last_ended == link.job;
  return told ? text("killed by ", name_of_signal(status.queue.signal)) : "killed";
}

// The job's shell dies of any signal but those that PBS itself ends it with, before the link under it can save.
std::string qsig_text(const ChainStatus& status) {
  const QueueView& queue = status.queue;
  if (queue.signal == 0 || queue.signal == SIGTERM || queue.signal == SIGKILL) return "";
  return text("job ", queue.last_ended, " was ended by ", name_of_signal(queue.signal),
              " and could not save: qsig ends the job's shell. To stop with a save: lockstep submit --cancel ",
              base::shell_path(status.run.string()), ", or qdel\n");
}

std::string links_table(const ChainStatus& status) {
  base::Table table({{"link", base::Align::right},
                     {"job"},
                     {"host"},
                     {"began"},
                     {"ran", base::Align::right},
                     {"steps", base::Align::right},
                     {"end"}});
  const auto& links = status.chain.links;
  for (size_t i = 0; i < links.size(); ++i) {
    const ChainLink& link = links[i];
    // What a killed link saved shows when the next one begins.
    const int64_t after = i + 1 < links.size() ? links[i + 1].step_before : std::max(link.step_after, status.step);
    table.add({text(link.number), text(link.job, link.starts > 1 ? text(" (start ", link.starts, ")") : ""), link.host,
               clock_words(link.begun), link.ended > 0 ? base::format_duration(link.ended - link.begun) : "-",
               text(link.step_before, "-", after), outcome(link, status)});
  }
  return table.to_text();
}

// Of jobs that ended before their first line of the chain nobody else tells: their output, where there is one, is all
// that they left. The scheduler forgets them after some minutes; what it said before is kept.
void find_gone(const Chain& chain, QueueView& view) {
  const std::string known = view.gone.empty() ? "" : view.gone.back();
  view.gone.clear();
  for (const auto& id : chain.queued) {
    const auto has_id = [&](const BatchJob& job) { return job.id == id; };
    if (!chain.find(id) && std::none_of(view.jobs.begin(), view.jobs.end(), has_id)) view.gone.push_back(id);
  }
  const bool same = !view.gone.empty() && view.gone.back() == known;
  if (same && !view.gone_said.empty()) return;
  const site::JobEnd end =
      view.gone.empty() ? site::JobEnd{} : site::how_ended(chain.terms.scheduler, view.gone.back());
  view.gone_said = end.words;
  view.gone_by_hand = end.by_hand;
}

// A job that its memory limit ended looks like one that stopped in time, and one that wrote down no end may have died
// of a signal: only the scheduler knows. Asked until it has answered, once a link.
void find_kill(const base::Path& run, const Chain& chain, QueueView& view) {
  const auto over = std::find_if(chain.links.rbegin(), chain.links.rend(), [&](const ChainLink& link) {
    return std::none_of(view.jobs.begin(), view.jobs.end(), [&](const BatchJob& job) { return job.id == link.job; });
  });
  if (over == chain.links.rend() || over->job == view.last_ended) return;
  const site::JobEnd end = site::how_ended(chain.terms.scheduler, over->job);
  const auto killed = memory_kill(run, chain.terms, over->job, end);
  if (end.is_silent && !killed) return;
  view.last_ended = over->job;
  view.memory_killed = killed.value_or("");
  view.signal = !killed && over->ended == 0 ? end.signal : 0;
}

// No job of the chain ever got as far as its script, and nobody cancelled it: another one would not either.
bool ends_alike(const ChainStatus& status) {
  return status.chain.links.empty() && !status.queue.gone.empty() && !status.queue.gone_by_hand;
}

std::string gone_text(const ChainStatus& status) {
  const QueueView& queue = status.queue;
  if (queue.gone.empty()) return "";
  const bool one = queue.gone.size() == 1;
  const std::string& last = queue.gone.back();
  const base::Path output = status.run / text("link-", last, ".out");
  const bool has_output = std::filesystem::exists(output);
  std::string all = text(one ? "job " : "jobs ", base::join(queue.gone, ", "), " ended before ", one ? "its" : "their",
                         has_output ? " training began" : " script began");
  if (!queue.gone_said.empty()) all += text(" (", one ? "" : text(last, ": "), queue.gone_said, ")");
  const bool pbs = status.chain.terms.scheduler == site::SchedulerName::pbs;
  const std::string written = pbs ? scheduler_words(status.run, status.chain.terms, last) : "";
  if (has_output) {
    all += text(": ", output.string(), " says why");
  } else if (!written.empty()) {
    all += text(": PBS wrote \"", written, "\"");
  } else if (queue.gone_by_hand && pbs && !one) {
    all += ": PBS ends all links behind a waiting one that is deleted";
  } else if (ends_alike(status)) {
    all += text(": is ", status.run.string(), " on a file system that the nodes see?");
  }
  return all + "\n";
}

// A record that somebody else wrote, or that was made for another folder, would end other jobs of this user.
void check_record(const base::Path& run, const ChainTerms& terms) {
  const std::string by_hand = terms.scheduler == site::SchedulerName::slurm
                                  ? text("look at squeue --me, then scancel --name=", base::shell_path(terms.name))
                                  : "look at qstat -u $USER, then qdel JOB...";
  if (!OpenFile(chain_file(run)).is_ours_alone()) {
    throw base::Error(base::Blame::user,
                      text(chain_file(run).string(), " can be written by others, who would choose your jobs that end"),
                      by_hand);
  }
  if (const std::string name = queue_name(run); terms.name != name) {
    throw base::Error(base::Blame::user,
                      text(chain_file(run).string(), " is of jobs named '", terms.name, "', those of this folder are '",
                           name, "': it was moved, or reached by another path"),
                      by_hand);
  }
}

}  // namespace

QueueView view_queue(const base::Path& run, const Chain& chain, double now) {
  QueueView view = kept_view(run);
  if (now >= view.asked && now - view.asked < kAskEverySeconds) return view;
  // Noted before asking: whoever comes meanwhile does not ask as well.
  view.asked = now;
  base::write_json(queue_file(run), queue_json(view));
  const auto jobs = site::find_jobs(chain.terms.scheduler, chain.terms.name, chain.queued);
  view.answered = jobs.has_value();
  if (jobs) view.jobs = *jobs;
  std::erase_if(view.jobs, [](const BatchJob& job) { return !job.active(); });
  if (jobs) find_gone(chain, view);
  if (jobs) find_kill(run, chain, view);
  base::write_json(queue_file(run), queue_json(view));
  return view;
}

ChainStatus read_status(const base::Path& run, double now) {
  ChainStatus status;
  status.run = run;
  status.chain = read_chain(run);
  if (status.chain.over.empty()) status.queue = view_queue(run, status.chain, now);
  status.step = saved_step(run);
  for (const char* name : {"start", "resume"}) {
    if (const auto event = last_event(run, name)) status.total_steps = event->int_or("total_steps", status.total_steps);
  }
  return status;
}

std::string to_text(const ChainStatus& status, double now) {
  const Chain& chain = status.chain;
  std::string all = text(status.run.string(), ": ");
  if (!chain.over.empty()) {
    all += text("over (", chain.over, ") after ", chain.links.size(), " links");
  } else if (chain.links.empty() && !status.queue.gone.empty()) {
    all += text("no link of at most ", chain.terms.max_links, " has begun");
  } else {
    all += text("link ", std::max<size_t>(1, chain.links.size()), " of at most ", chain.terms.max_links);
  }
  all += text(", step ", status.step, status.total_steps > 0 ? text(" of ", status.total_steps) : "", " saved\n");
  if (!chain.links.empty()) {
    all += links_table(status);
    const std::string& last = chain.links.back().job;
    const std::string killed = killed_for(scheduler_words(status.run, chain.terms, last));
    if (!killed.empty()) all += text("job ", last, ": PBS ended it: ", killed, "\n");
  }
  if (!chain.closing_words.empty()) all += chain.closing_words + "\n";
  if (chain.over.empty() && !status.queue.memory_killed.empty()) {
    all +=
        text("job ", status.queue.last_ended, " used more memory than it had asked for (", status.queue.memory_killed,
             "): the next link will end the chain; ask for more and submit it again: --site scheduler.memory=BYTES\n");
  }
  if (chain.over.empty()) {
    all += qsig_text(status);
    const std::string age = text(", asked ", std::llround(std::max(0.0, now - status.queue.asked)), " s ago");
    all += gone_text(status);
    if (!status.queue.answered) {
      all += text(site::name_of(chain.terms.scheduler), " did not answer", age, "\n");
    } else if (status.queue.jobs.empty()) {
      all += text("no job of it is in the queue", age,
                  ends_alike(status) ? "; submitted again it would end alike until that is fixed"
                                     : ": submit it again to go on",
                  "\n");
    }
    for (const auto& job : status.queue.jobs) {
      all += text("job ", job.id, " ", job.said, job.reason.empty() ? "" : text(" (", job.reason, ")"),
                  job.start.empty() ? "" : text(", start ", job.start), job.on_nodes.empty() ? "" : " on ",
                  job.on_nodes, age, "\n");
    }
  }
  if (chain.terms.promised_end) {
    all += text("promised end ", clock_words(*chain.terms.promised_end));
    if (chain.over == "done") {
      const double late = chain.closed - *chain.terms.promised_end;
      all += text(", real end ", clock_words(chain.closed), ": ", base::format_duration(std::abs(late)),
                  late > 0 ? " later" : " earlier");
    }
    all += "\n";
  }
  if (!chain.first_refusal.empty()) all += text("a link could not queue its successor: ", chain.first_refusal, "\n");
  return all;
}

Json to_json(const ChainStatus& status, double now) {
  const Chain& chain = status.chain;
  Json all = Json::object();
  all["run"] = status.run.string();
  all["name"] = chain.terms.name;
  all["over"] = chain.over;
  all["closing_words"] = chain.closing_words;
  all["step"] = status.step;
  all["total_steps"] = status.total_steps;
  all["max_links"] = chain.terms.max_links;
  all["submitted"] = chain.submitted;
  all["closed"] = chain.closed;
  all["promised_start"] = chain.terms.promised_start ? Json(*chain.terms.promised_start) : Json();
  all["promised_end"] = chain.terms.promised_end ? Json(*chain.terms.promised_end) : Json();
  all["links"] = Json::array();
  for (const auto& link : chain.links) {
    Json row = Json::object();
    row["link"] = link.number;
    row["job"] = link.job;
    row["host"] = link.host;
    row["starts"] = link.starts;
    row["begun"] = link.begun;
    row["ended"] = link.ended;
    row["code"] = link.code;
    row["end"] = outcome(link, status);
    row["step_before"] = link.step_before;
    row["step_after"] = link.step_after;
    all["links"].push_back(std::move(row));
  }
  Json queue = queue_json(status.queue);
  queue["age_seconds"] = status.queue.asked > 0 ? Json(now - status.queue.asked) : Json();
  all["queue"] = std::move(queue);
  return all;
}

std::vector<std::string> cancel_chain(const base::Path& run) {
  const Chain chain = read_chain(run);
  check_record(run, chain.terms);  // before anything is cancelled, and before it is called so
  if (chain.over.empty()) ChainRecord(run).close("cancelled", saved_step(run), chain.terms);
  const auto jobs = site::find_jobs(chain.terms.scheduler, chain.terms.name, chain.queued);
  if (!jobs) {
    throw base::Error(base::Blame::machine,
                      text(site::name_of(chain.terms.scheduler),
                           " does not answer; the chain is marked as cancelled, its "
                           "waiting links will do nothing"),
                      "try again later: the running link goes on until its end");
  }
  std::vector<std::string> cancelled;
  for (const State state : {State::waiting, State::running}) {
    std::vector<std::string> ids;
    for (const auto& job : *jobs) {
      if (job.state == state) ids.push_back(job.id);
    }
    if (!site::cancel_jobs(chain.terms.scheduler, ids)) {
      throw base::Error(base::Blame::machine, text("could not cancel ", base::join(ids, ", ")),
                        "are they yours? squeue, qstat");
    }
    cancelled.insert(cancelled.end(), ids.begin(), ids.end());
  }
  std::error_code none;
  std::filesystem::remove(queue_file(run), none);  // what it says is no longer so
  return cancelled;
}

}  // namespace lockstep::chain
