// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/chain.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/site/batch.h"

namespace lockstep::chain {
namespace {

using base::Json;
using base::text;

template <class Choice>
Choice choice_of(const std::string& word, Choice otherwise) {
  const auto names = choices_of(otherwise);
  const auto found = std::find(names.begin(), names.end(), word);
  return found == names.end() ? otherwise : static_cast<Choice>(found - names.begin());
}

std::optional<double> time_in(const Json& event, const char* key) {
  const Json* value = event.find(key);
  return value && value->is_number() ? std::optional(value->as_double()) : std::nullopt;
}

std::vector<std::string> strings_in(const Json& event, const char* key) {
  std::vector<std::string> all;
  const Json* list = event.find(key);
  if (!list || !list->is_array()) return all;
  for (const auto& item : list->items()) {
    if (item.is_string()) all.push_back(item.as_string());
  }
  return all;
}

ChainTerms terms_of(const Json& event) {
  ChainTerms terms;
  terms.name = event.string_or("name", "");
  terms.scheduler = event.string_or("scheduler", "") == "pbs" ? site::SchedulerName::pbs : site::SchedulerName::slurm;
  terms.submit_from = choice_of(event.string_or("submit_from", ""), spec::SubmitFrom::job);
  terms.walltime = event.double_or("walltime", 0);
  terms.planned_links = event.int_or("planned_links", 0);
  terms.max_links = event.int_or("max_links", 0);
  terms.patience = event.int_or("patience", 0);
  terms.promised_start = time_in(event, "promised_start");
  terms.promised_end = time_in(event, "promised_end");
  return terms;
}

ChainLink& link_of(Chain& chain, const Json& event) {
  const std::string job = event.string_or("job", "");
  for (auto& link : chain.links) {
    if (link.job == job) return link;
  }
  ChainLink& fresh = chain.links.emplace_back();
  fresh.job = job;
  fresh.number = event.int_or("link", static_cast<int64_t>(chain.links.size()));
  fresh.step_before = fresh.step_after = event.int_or("step", 0);
  return fresh;
}

void take_in(Chain& chain, const Json& event) {
  const std::string& kind = event.at("event").as_string();
  const double time = event.double_or("t", 0);
  if (kind == "chain") {
    chain = Chain{};
    chain.terms = terms_of(event);
    chain.submitted = time;
  } else if (kind == "queued") {
    chain.queued.push_back(event.string_or("job", ""));
    if (const std::string by = event.string_or("by", ""); !by.empty()) chain.followed.push_back(by);
  } else if (kind == "refused") {
    if (chain.first_refusal.empty()) chain.first_refusal = event.string_or("words", "");
  } else if (kind == "exclude") {
    for (const auto& host : strings_in(event, "hosts")) {
      std::erase(chain.bad_hosts, host);
      chain.bad_hosts.push_back(host);
    }
  } else if (kind == "begin") {
    ChainLink& link = link_of(chain, event);
    ++link.starts;
    link.begun = time;
    link.host = event.string_or("host", "");
    link.ended = 0;
  } else if (kind == "finish") {
    ChainLink& link = link_of(chain, event);
    link.ended = time;
    link.code = static_cast<int>(event.int_or("code", -1));
    link.step_after = event.int_or("step", link.step_after);
  } else if (kind == "close" && chain.over.empty()) {
    chain.over = event.string_or("why", "done");
    chain.closing_words = event.string_or("words", "");
    chain.closed = time;
  }
}

}  // namespace

const ChainLink* Chain::find(const std::string& job) const {
  const auto found = std::find_if(links.begin(), links.end(), [&](const ChainLink& link) { return link.job == job; });
  return found == links.end() ? nullptr : &*found;
}

int64_t Chain::idle_links(int64_t step) const {
  // What a killed link saved shows when the next one begins.
  int64_t idle = 0;
  int64_t reached = step;
  for (auto link = links.rbegin(); link != links.rend() && link->step_before >= reached; ++link) {
    ++idle;
    reached = link->step_before;
  }
  return idle;
}

OpenFile::OpenFile(const base::Path& path) : descriptor_(base::open_plain(path, O_RDONLY)) {
  if (descriptor_ < 0) base::throw_errno(text("cannot open ", path.string()));
}

OpenFile::~OpenFile() {
  ::close(descriptor_);
}

bool OpenFile::is_ours_alone() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) base::throw_errno("cannot see an open file");
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

base::Path chain_file(const base::Path& run) {
  return run / "chain.jsonl";
}

bool has_chain(const base::Path& run) {
  return std::filesystem::exists(chain_file(run));
}

Chain rebuild_chain(const run::History& history) {
  Chain chain;
  for (const auto& event : history.events) take_in(chain, event);
  return chain;
}

Chain read_chain(const base::Path& run) {
  if (!has_chain(run)) {
    throw base::Error(base::Blame::user, text(run.string(), ": no chain of jobs was submitted for this run"),
                      "lockstep submit JOB --on MACHINE --run DIR begins one; `ls runs` shows the runs");
  }
  return rebuild_chain(run::read_journal(chain_file(run)));
}

void ChainRecord::append(const char* event, const Json& fields) {
  journal_.append(event, fields);
  journal_.sync();
}

void ChainRecord::open(const ChainTerms& terms) {
  Json fields = Json::object();
  fields["name"] = terms.name;
  fields["scheduler"] = site::name_of(terms.scheduler);
  fields["submit_from"] = name_of(terms.submit_from);
  fields["walltime"] = terms.walltime;
  fields["planned_links"] = terms.planned_links;
  fields["max_links"] = terms.max_links;
  fields["patience"] = terms.patience;
  if (terms.promised_start) fields["promised_start"] = *terms.promised_start;
  if (terms.promised_end) fields["promised_end"] = *terms.promised_end;
  append("chain", fields);
  ::fchmod(OpenFile(path_).get(), 0644);  // whatever the umask: nobody else's to write
}

void ChainRecord::queued(const std::string& job, const std::string& by) {
  Json fields = Json::object();
  fields["job"] = job;
  if (!by.empty()) fields["by"] = by;
  append("queued", fields);
}

void ChainRecord::refused(const std::string& job, const std::string& words) {
  Json fields = Json::object();
  fields["job"] = job;
  fields["words"] = words;
  append("refused", fields);
}

void ChainRecord::exclude(const std::string& job, const std::vector<std::string>& hosts) {
  Json fields = Json::object();
  fields["job"] = job;
  fields["hosts"] = Json::array_of(hosts);
  append("exclude", fields);
}

void ChainRecord::begin(const std::string& job, int64_t number, int64_t step, const std::string& host) {
  Json fields = Json::object();
  fields["job"] = job;
  fields["link"] = number;
  fields["step"] = step;
  fields["host"] = host;
  append("begin", fields);
}

void ChainRecord::finish(const std::string& job, int code, int64_t step) {
  Json fields = Json::object();
  fields["job"] = job;
  fields["code"] = code;
  fields["step"] = step;
  append("finish", fields);
}

void ChainRecord::close(const std::string& why, int64_t step, const ChainTerms& terms, const std::string& words) {
  Json fields = Json::object();
  fields["why"] = why;
  fields["step"] = step;
  if (!words.empty()) fields["words"] = words;
  if (why == "done" && terms.promised_end) {
    fields["promised_end"] = *terms.promised_end;
    fields["late_seconds"] = base::unix_seconds() - *terms.promised_end;
  }
  append("close", fields);
}

base::Path link_output(const base::Path& run, const ChainTerms& terms, const std::string& job) {
  const bool pbs = terms.scheduler == site::SchedulerName::pbs;
  return run / (pbs ? site::pbs_output(terms.name, job) : text("link-", job, ".out"));
}

std::string scheduler_words(const base::Path& run, const ChainTerms& terms, const std::string& job) {
  constexpr size_t kMost = 600;  // of a file that a login script may fill
  const bool pbs = terms.scheduler == site::SchedulerName::pbs;
  const base::Path file = link_output(run, terms, job);
  std::error_code unreadable;
  if (!std::filesystem::exists(file, unreadable)) return "";
  std::string all;
  try {
    for (const auto& line : base::split(base::read_file(file), '\n')) {
      if (base::trim(line).empty()) continue;
      if (pbs) all += (all.empty() ? "" : "; ") + std::string(base::trim(line));
      if (!pbs && (line.starts_with("slurmstepd:") || line.starts_with("srun: error"))) all = base::trim(line);
    }
  } catch (const base::Error&) {
    return "";  // another user's, perhaps: it is only there to be shown
  }
  return all.size() <= kMost ? all : text("... ", all.substr(all.size() - kMost));
}

std::optional<std::string> memory_kill(const base::Path& run, const ChainTerms& terms, const std::string& job,
                                       const site::JobEnd& end) {
  const std::string written = scheduler_words(run, terms, job);
  // "=>> PBS: job killed: mem 423548kb exceeded limit 51200kb" (OpenPBS 23.06)
  for (const char* phrase : {"job killed: mem ", "job killed: vmem "}) {
    if (const size_t at = written.find(phrase); at != std::string::npos) {
      return written.substr(at, written.find(';', at) - at);
    }
  }
  return end.out_of_memory ? std::optional(end.words) : std::nullopt;
}

// Searched from the end, as text: a journal of months is not parsed for one number.
std::optional<Json> last_event(const base::Path& run, std::string_view name) {
  const base::Path journal = run::RunPaths{run}.journal();
  if (!std::filesystem::exists(journal)) return std::nullopt;
  const std::string content = base::read_file(journal, uint64_t{1} << 32);
  const std::string mark = text("\"event\":\"", name, "\"");
  for (size_t at = content.rfind(mark); at != std::string::npos && at > 0; at = content.rfind(mark, at - 1)) {
    const size_t begin = content.rfind('\n', at) + 1;  // npos + 1 = 0: the first line
    const size_t end = content.find('\n', at);
    if (end == std::string::npos) continue;  // torn
    try {
      Json event = base::parse_json(std::string_view(content).substr(begin, end - begin), journal.string());
      if (event.string_or("event", "") == name) return event;
    } catch (const base::Error&) {
      continue;  // a damaged line: an older one will do
    }
  }
  return std::nullopt;
}

std::optional<GivenUp> given_up(const base::Path& run, double since) {
  const auto event = last_event(run, "gave_up");
  if (!event || event->double_or("t", 0) < since) return std::nullopt;
  return GivenUp{event->string_or("why", ""), strings_in(*event, "hosts")};
}

int64_t saved_step(const base::Path& run) {
  const auto save = last_event(run, "save");
  const auto stamp = run::newest_stamp(run::RunPaths{run}.checkpoints());
  return std::max(save ? save->int_or("step", 0) : 0, stamp ? stamp->step : 0);
}

}  // namespace lockstep::chain
