// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/run_watch.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/file_tail.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/chain.h"

namespace lockstep::watching {
namespace {

using base::Json;
using base::text;

constexpr double kRecent = 60;  // seconds over which the present rate is taken

std::vector<std::string> newest(const std::vector<std::string>& lines, size_t most) {
  return {lines.end() - static_cast<int64_t>(std::min(most, lines.size())), lines.end()};
}

LinkLine line_of(const chain::ChainLink& link, bool last) {
  LinkLine line{.job = link.job,
                .host = link.host,
                .state = {},
                .number = link.number,
                .from_step = link.step_before,
                .to_step = link.step_after};
  if (link.ended == 0) {
    line.state = last ? "running" : "was killed";
  } else if (link.code == 0) {
    line.state = "done";
  } else {
    line.state =
        link.code == 85 || link.code == chain::kExitNextLink ? "stopped in order" : text("exit code ", link.code);
  }
  if (link.starts > 1) line.state += text(", started ", link.starts, " times");
  return line;
}

std::string about(const Json& start) {
  if (!start.is_object()) return "";
  std::vector<std::string> parts;
  parts.push_back(start.string_or("model", ""));
  if (const int64_t parameters = start.int_or("parameters", 0); parameters > 0) {
    parts.push_back(text(base::format_short_count(static_cast<double>(parameters)), " parameters"));
  }
  const int64_t ranks = start.int_or("ranks", 1);
  parts.push_back(text(ranks, ranks == 1 ? " rank on " : " ranks on ", start.string_or("device", "?"), ", ",
                       start.string_or("precision", "?")));
  if (const std::string host = start.string_or("host", ""); !host.empty()) parts.push_back(host);
  std::erase(parts, "");
  return base::join(parts, "  ");
}

struct Recent {
  double rate = kAbsent, step_seconds = kAbsent;
};

Recent recent_of(const RunLog& log) {
  double samples = 0, seconds = 0, steps = 0;
  const size_t first = log.first_warm();
  for (size_t i = log.steps.size(); i > first && seconds < kRecent; --i) {
    samples += log.steps[i - 1].samples;
    seconds += log.steps[i - 1].seconds;
    steps += static_cast<double>(log.steps[i - 1].steps);
  }
  return seconds > 0 ? Recent{samples / seconds, seconds / steps} : Recent{};
}

void add_scores(const RunLog& log, Snapshot& snapshot) {
  for (const auto& event : log.evaluations) {
    if (event.string_or("split", "validate") != "validate") continue;
    const Json* headline = event.find("headline");
    const Json* value = headline && headline->is_object() ? headline->find("value") : event.find("top1");
    if (!value || !value->is_number()) continue;
    const Json* higher = headline && headline->is_object() ? headline->find("higher_is_better") : nullptr;
    const bool rises = !higher || higher->as_bool();
    snapshot.score_name = headline && headline->is_object() ? headline->string_or("name", "score") : "top1";
    snapshot.score_is_share =
        headline && headline->is_object() ? headline->string_or("text", "").find('%') != std::string::npos : true;
    snapshot.score = value->as_double();
    snapshot.scores.push_back(snapshot.score);
    const bool first = std::isnan(snapshot.best_score);
    // Of equals the later, as training keeps it.
    if (first || (rises ? snapshot.score >= snapshot.best_score : snapshot.score <= snapshot.best_score)) {
      snapshot.best_score = snapshot.score;
      snapshot.best_step = event.int_or("step", 0);
    }
  }
}

// The steps that are left at the present pace; evaluations and saves take the share that they have taken.
double time_left(const RunLog& log, const TimeSplit& time, double step_seconds) {
  const int64_t total = log.total_steps();
  if (total == 0 || std::isnan(step_seconds)) return kAbsent;
  const double stepping = time.total() - time.evaluation - time.features;
  const double more = stepping > 0 ? 1 + time.evaluation / stepping : 1;
  return static_cast<double>(total - std::min(total, log.step())) * step_seconds * more;
}

}  // namespace

std::string words_for(Status status) {
  constexpr const char* kWords[] = {"not started", "queued",  "starting",  "running",
                                    "finished",    "stopped", "broke off", "gone"};
  return kWords[static_cast<size_t>(status)];
}

bool is_over(Status status) {
  return status == Status::finished || status == Status::stopped || status == Status::broke_off ||
         status == Status::gone;
}

int exit_code(Status status) {
  if (status == Status::stopped) return base::kExitRequeue;
  return status == Status::broke_off || status == Status::gone ? static_cast<int>(base::Blame::machine) : 0;
}

RunWatch::RunWatch(run::RunPaths paths) : paths_(std::move(paths)), tail_(paths_.journal()) {}

void RunWatch::poll() {
  auto news = tail_.poll();
  if (news.starts_over) {
    const int64_t voids = log_.num_voids;
    log_ = RunLog();
    log_.num_voids = voids + 1;
  }
  for (const auto& event : news.events) log_.add(event);
  read_documents();
}

// Once a session: a resume may have changed the job.
void RunWatch::read_documents() {
  const double session = log_.start.is_object() ? log_.start.double_or("t", 0) : 0;
  if (session == documents_read_) return;
  documents_read_ = session;
  trouble_.clear();
  try {
    job_.reset();
    plan_.reset();
    if (base::is_there(paths_.job())) job_ = spec::parse_job(base::read_json(paths_.job()));
    if (base::is_there(paths_.plan())) plan_ = spec::load_plan(paths_.plan());
  } catch (const base::Error& error) {
    trouble_.emplace_back(error.what());
  }
}

Status RunWatch::status() const {
  std::error_code unknown;
  if (!std::filesystem::is_directory(paths_.root, unknown)) return Status::gone;
  const bool begun = !log_.start.is_null();
  if (run::read_holder(paths_.root) || run::read_holder(run::supervisors_folder(paths_.root))) {
    return begun ? Status::running : Status::starting;
  }
  if (!log_.end.is_null()) return Status::finished;
  if (chain::has_chain(paths_.root)) {
    const chain::Chain chain = chain::read_chain(paths_.root);
    const bool in_job = !chain.links.empty() && chain.links.back().ended == 0;
    if (chain.over.empty() && in_job && chain.links.back().begun > log_.last_time) return Status::starting;
    if (chain.over.empty() && chain.queued.size() > chain.links.size()) return Status::queued;
  }
  if (!log_.stop.is_null()) return Status::stopped;
  return begun ? Status::broke_off : Status::not_started;
}

std::optional<ChainView> RunWatch::chain() const {
  if (!chain::has_chain(paths_.root)) return std::nullopt;
  const chain::Chain chain = chain::read_chain(paths_.root);
  ChainView view;
  view.planned_links = chain.terms.planned_links;
  view.waiting = static_cast<int64_t>(chain.queued.size()) - static_cast<int64_t>(chain.links.size());
  view.over =
      chain.over.empty() || chain.closing_words.empty() ? chain.over : text(chain.over, ": ", chain.closing_words);
  view.links.reserve(chain.links.size());
  for (const auto& link : chain.links) view.links.push_back(line_of(link, &link == &chain.links.back()));
  return view;
}

std::vector<std::string> RunWatch::last_lines(size_t most) const {
  if (chain::has_chain(paths_.root)) {
    const chain::Chain chain = chain::read_chain(paths_.root);
    if (!chain.links.empty()) {
      auto lines = base::split(
          base::read_tail(chain::link_output(paths_.root, chain.terms, chain.links.back().job), 16 << 10), '\n');
      std::erase(lines, "");
      if (!lines.empty()) return newest(lines, most);
    }
  }
  return newest(log_.lines, most);
}

Slowness RunWatch::slowness() const {
  Terms terms;
  if (job_) terms.job = &*job_;
  if (plan_) terms.plan = &*plan_;
  if (plan_ && log_.promise.is_object()) {
    const auto option = static_cast<size_t>(log_.promise.int_or("option", 0));
    if (option < plan_->options.size()) terms.option = &plan_->options[option];
  }
  return explain_slowness(log_, terms);
}

std::vector<std::string> RunWatch::warnings() const {
  std::vector<std::string> all = trouble_;
  if (tail_.num_bad_lines() > 0) {
    std::vector<std::string> numbers;
    numbers.reserve(tail_.bad_lines().size());
    for (const int64_t line : tail_.bad_lines()) numbers.push_back(text(line));
    if (numbers.size() > 5) numbers.resize(5), numbers.emplace_back("...");
    all.push_back(text(paths_.journal().filename().string(), ": ", numbers.size() == 1 ? "line " : "lines ",
                       base::join(numbers, ", "), numbers.size() == 1 ? " is no event" : " are no events",
                       " (torn by a kill, or damaged) and left out"));
  }
  all.insert(all.end(), log_.warnings.begin(), log_.warnings.end());
  return all;
}

Snapshot RunWatch::look(double now) const {
  Snapshot snapshot;
  snapshot.folder = paths_.root.string();
  const base::Path whole = std::filesystem::absolute(paths_.root).lexically_normal();
  snapshot.name = whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  if (log_.start.is_object()) snapshot.name = log_.start.string_or("name", snapshot.name);
  snapshot.about = about(log_.start);
  snapshot.status = status();
  if (!log_.sessions.empty() && is_over(snapshot.status)) {
    snapshot.outcome = log_.sessions.back().string_or("outcome", "");
  }
  snapshot.step = log_.step();
  snapshot.total_steps = log_.total_steps();
  snapshot.figure_name = log_.figure_name();
  if (!log_.steps.empty()) {
    const StepRecord& last = log_.steps.back();
    snapshot.epoch = last.epoch;
    snapshot.loss = last.loss;
    snapshot.figure = last.figure;
    snapshot.memory = last.memory;
    snapshot.watts = last.watts;
  }
  if (const double per_epoch = log_.start.is_object() ? log_.start.double_or("steps_per_epoch", 0) : 0; per_epoch > 0) {
    snapshot.epochs = static_cast<double>(snapshot.total_steps) / per_epoch;
  }
  snapshot.losses.reserve(log_.steps.size());
  snapshot.rates.reserve(log_.steps.size());
  for (const auto& record : log_.steps) {
    snapshot.losses.push_back(record.loss);
    snapshot.rates.push_back(record.seconds > 0 ? record.samples / record.seconds : kAbsent);
  }
  add_scores(log_, snapshot);
  const Recent recent = recent_of(log_);
  snapshot.rate = recent.rate;
  snapshot.step_seconds = recent.step_seconds;
  snapshot.time = log_.split();
  snapshot.elapsed = snapshot.time.total();
  if (!is_over(snapshot.status)) snapshot.left = time_left(log_, snapshot.time, recent.step_seconds);
  snapshot.silent = log_.last_time > 0 ? std::max(0.0, now - log_.last_time) : 0;
  snapshot.promise = log_.promise;
  snapshot.slowness = slowness();
  snapshot.chain = chain();
  snapshot.warnings = warnings();
  snapshot.lines = last_lines(30);
  return snapshot;
}

Json to_json(const ChainView& chain) {
  Json json = Json::object();
  json["planned_links"] = chain.planned_links;
  json["waiting"] = chain.waiting;
  if (!chain.over.empty()) json["over"] = chain.over;
  json["links"] = Json::array();
  for (const auto& link : chain.links) {
    Json one = Json::object();
    one["job"] = link.job;
    one["link"] = link.number;
    one["host"] = link.host;
    one["state"] = link.state;
    one["from_step"] = link.from_step;
    one["to_step"] = link.to_step;
    json["links"].push_back(std::move(one));
  }
  return json;
}

Json to_json(const Snapshot& snapshot) {
  const auto known = [](Json& json, const char* key, double value) {
    if (!std::isnan(value)) json[key] = value;
  };
  Json json = Json::object();
  json["run"] = snapshot.folder;
  json["name"] = snapshot.name;
  json["about"] = snapshot.about;
  json["status"] = words_for(snapshot.status);
  if (!snapshot.outcome.empty()) json["outcome"] = snapshot.outcome;
  json["step"] = snapshot.step;
  json["total_steps"] = snapshot.total_steps;
  known(json, "epoch", snapshot.epoch);
  known(json, "epochs", snapshot.epochs);
  known(json, "loss", snapshot.loss);
  known(json, snapshot.figure_name.c_str(), snapshot.figure);
  if (!snapshot.scores.empty()) {
    json["score"] = Json::object();
    json["score"]["name"] = snapshot.score_name;
    json["score"]["value"] = snapshot.score;
    json["score"]["best"] = snapshot.best_score;
    json["score"]["best_step"] = snapshot.best_step;
  }
  known(json, "samples_per_second", snapshot.rate);
  known(json, "step_seconds", snapshot.step_seconds);
  json["elapsed"] = snapshot.elapsed;
  known(json, "left", snapshot.left);
  known(json, "memory", snapshot.memory);
  known(json, "watts", snapshot.watts);
  json["time"] = to_json(snapshot.time);
  if (!snapshot.promise.is_null()) json["promise"] = snapshot.promise;
  json["slowness"] = to_json(snapshot.slowness);
  if (snapshot.chain) json["chain"] = to_json(*snapshot.chain);
  json["warnings"] = Json::array_of(snapshot.warnings);
  json["lines"] = Json::array_of(snapshot.lines);
  return json;
}

}  // namespace lockstep::watching
