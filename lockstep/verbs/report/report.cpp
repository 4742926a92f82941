// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/report/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"
#include "lockstep/version.h"
#include "lockstep/web/page.h"

namespace lockstep::verbs::report {
namespace {

using base::Json;
using base::Path;

constexpr size_t kMostPoints = 600;
constexpr size_t kMostClasses = 120;  // of the heat map: more cells than that a screen cannot show
constexpr uint64_t kMostThumbnailBytes = 64 << 10;
constexpr base::JsonLimits kLargeJson{.max_bytes = size_t{256} << 20};

double number(const Json& line, std::string_view key, double otherwise = 0) {
  const Json* value = line.find(key);
  return value && value->is_number() ? value->as_double() : otherwise;
}

bool is_event(const Json& line, std::string_view name) {
  return line.at("event").as_string() == name;
}

// The mean of `key` over [from, to), weighted by the steps each record covers; null when none has it.
Json mean_of(const std::vector<Json>& lines, size_t from, size_t to, std::string_view key) {
  double sum = 0;
  double weight = 0;
  for (size_t i = from; i < to; ++i) {
    const Json* value = lines[i].find(key);
    if (!value || !value->is_number()) continue;
    const double steps = number(lines[i], "steps", 1);
    sum += steps * value->as_double();
    weight += steps;
  }
  return weight > 0 ? Json(sum / weight) : Json();
}

// `figure`: the task's own, besides the loss.
Json thin_steps(const std::vector<Json>& steps, const std::string& figure) {
  Json points = Json::array();
  const size_t bins = std::min(kMostPoints, steps.size());
  for (size_t b = 0; b < bins; ++b) {
    const size_t from = b * steps.size() / bins;
    const size_t to = (b + 1) * steps.size() / bins;
    double samples = 0;
    double seconds = 0;
    for (size_t i = from; i < to; ++i) {
      samples += number(steps[i], "samples");
      seconds += number(steps[i], "seconds");
    }
    Json point = Json::object();
    point["step"] = number(steps[to - 1], "step");
    point["epoch"] = steps[to - 1].contains("epoch") ? *steps[to - 1].find("epoch") : Json();
    for (const std::string& key : {std::string("loss"), figure, std::string("lr"), std::string("grad_norm")}) {
      Json mean = mean_of(steps, from, to, key);
      if (!mean.is_null()) point[key] = std::move(mean);
    }
    if (seconds > 0) point["samples_per_second"] = samples / seconds;
    points.push_back(std::move(point));
  }
  return points;
}

// Where the time went, in seconds; "other" is what no part accounts for.
Json time_split(const std::vector<Json>& events) {
  double data = 0, compute = 0, communication = 0, save = 0, evaluation = 0, features = 0, stepping = 0;
  for (const auto& line : events) {
    if (is_event(line, "step")) {
      data += number(line, "data");
      compute += number(line, "compute");
      communication += number(line, "communication");
      save += number(line, "save");  // what the steps waited; the rest of a save runs beside them
      stepping += number(line, "seconds") - number(line, "save");
    }
    if (is_event(line, "evaluate")) evaluation += number(line, "seconds");
    if (is_event(line, "features")) features += number(line, "seconds");
  }
  Json split = Json::object();
  split["data wait"] = data;
  split["compute"] = compute;
  split["communication"] = communication;
  split["save"] = save;
  split["evaluation"] = evaluation;
  split["cached features"] = features;
  split["other"] = std::max(0.0, stepping - data - compute - communication);
  return split;
}

// Each interval from a start or resume to the event that ended it; the last line seen stands for its end.
Json sessions_of(const std::vector<Json>& events) {
  std::vector<Json> sessions;
  for (const auto& line : events) {
    if (is_event(line, "start") || is_event(line, "resume")) {
      Json session = Json::object();
      session["began"] = number(line, "t");
      session["from_step"] = line.int_or("step", 0);
      for (const char* key : {"host", "ranks", "device", "checkpoint"}) {
        if (const Json* value = line.find(key)) session[key] = *value;
      }
      session["outcome"] = "broke off";
      sessions.push_back(std::move(session));
    }
    if (sessions.empty()) continue;
    Json& session = sessions.back();
    session["ended"] = number(line, "t");
    if (line.contains("step")) {  // a restart tells the last heartbeat's, which may be older than the journal's own
      session["to_step"] = std::max(session.int_or("to_step", 0), line.int_or("step", 0));
    }
    if (is_event(line, "restart") || is_event(line, "gave_up")) {
      session["outcome"] = base::text("broke off: ", line.string_or("what", "a fault"));
    }
    if (is_event(line, "stop")) session["outcome"] = base::text("stopped: ", line.string_or("reason", "asked to"));
    if (is_event(line, "end")) session["outcome"] = "finished";
  }
  return Json::array(std::move(sessions));
}

std::string read_status(const run::RunPaths& paths, const std::vector<Json>& events) {
  if (run::read_holder(paths.root)) return "running";
  for (auto line = events.rbegin(); line != events.rend(); ++line) {
    if (is_event(*line, "end")) return "finished";
    if (is_event(*line, "stop")) return "stopped";
    if (is_event(*line, "start") || is_event(*line, "resume")) return "broke off";
  }
  return "not started";
}

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63];
  }
  return out;
}

// The last part of the name only: a hostile eval.json cannot make the report carry another file away.
std::optional<std::string> thumbnail(const run::RunPaths& paths, const std::string& picture) {
  const Path file = paths.pictures() / Path(picture).filename();
  if (picture.empty() || !std::filesystem::is_regular_file(file)) return std::nullopt;
  if (std::filesystem::file_size(file) > kMostThumbnailBytes) return std::nullopt;
  const std::string bytes = base::read_file(file, kMostThumbnailBytes);
  if (!bytes.starts_with("\xff\xd8")) return std::nullopt;
  return "data:image/jpeg;base64," + base64(bytes);
}

Json read_evaluation(const run::RunPaths& paths) {
  Json evaluation = base::read_json(paths.evaluation(), kLargeJson);
  if (const Json* classes = evaluation.find("classes"); classes && classes->size() > kMostClasses) {
    evaluation.erase("confusion");
  }
  if (!evaluation.contains("worst")) return evaluation;
  Json pictures = Json::array();
  for (const auto& item : evaluation.at("worst").items()) {
    Json mistake = item;
    if (auto uri = thumbnail(paths, item.string_or("picture", ""))) mistake["picture"] = *uri;
    pictures.push_back(std::move(mistake));
  }
  evaluation["worst"] = std::move(pictures);
  return evaluation;
}

Json array_of_events(const std::vector<Json>& events, std::string_view name, size_t most) {
  Json all = Json::array();
  for (const auto& line : events) {
    if (is_event(line, name) && all.size() < most) all.push_back(line);
  }
  return all;
}

// `which` of eval.json: "best, step 12, top-1 92.93 %".
void check_weights(const Json& evaluation, const std::string& weights, const Path& run) {
  const std::string which = evaluation.string_or("which", "");
  const bool same = which.starts_with(weights) ||
                    which.find(base::text(", step ", weights, ",")) != std::string::npos ||
                    which.ends_with(base::text(", step ", weights));
  if (which.empty() || same) return;
  throw base::Error(
      base::Blame::user, base::text("eval.json is of other weights: ", which),
      base::text("lockstep eval ", base::shell_path(run.string()), " --weights ", base::shell_path(weights)));
}

// The job's name; a run folder may be called anything.
std::string title_of(const Json& data) {
  const Json* start = data.find("start");
  return start && start->is_object() ? start->string_or("name", data.string_or("name", "run"))
                                     : data.string_or("name", "run");
}

}  // namespace

Json gather_report(const run::RunPaths& paths, const std::string& weights) {
  run::History history;
  if (std::filesystem::exists(paths.journal())) history = run::read_journal(paths.journal());
  const std::vector<Json> events = history.effective();
  const std::vector<Json> steps = history.named("step");
  Json data = Json::object();
  data["name"] = std::filesystem::absolute(paths.root).lexically_normal().filename().string();
  data["version"] = LOCKSTEP_VERSION;
  data["made"] = static_cast<int64_t>(std::time(nullptr));
  data["status"] = read_status(paths, events);
  for (const auto& line : events) {  // the latest start or resume describes the run
    if (is_event(line, "start") || is_event(line, "resume")) data["start"] = line;
    if (is_event(line, "end")) data["end"] = line;
    if (is_event(line, "promise")) data["promise"] = line;
  }
  const Json* start = data.find("start");
  const Json* words = start ? start->find("report") : nullptr;
  data["steps"] = thin_steps(steps, words ? words->string_or("training", "accuracy") : "accuracy");
  double samples = 0;
  double seconds = 0;
  for (const auto& line : steps) samples += number(line, "samples"), seconds += number(line, "seconds");
  if (seconds > 0) data["samples_per_second"] = samples / seconds;
  data["epochs"] = array_of_events(events, "epoch", 10000);
  data["evaluations"] = array_of_events(events, "evaluate", 10000);
  data["bad_samples"] = array_of_events(events, "bad_sample", 100);
  data["time"] = time_split(events);
  data["sessions"] = sessions_of(history.events);
  if (std::filesystem::exists(paths.evaluation())) data["evaluation"] = read_evaluation(paths);
  if (!weights.empty()) {
    data["weights"] = weights;
    if (const Json* evaluation = data.find("evaluation")) check_weights(*evaluation, weights, paths.root);
  }
  if (std::filesystem::exists(paths.job())) data["job"] = base::read_json(paths.job());
  return data;
}

std::string render_report(const Json& data) {
  return web::render_page("report", title_of(data), data);
}

}  // namespace lockstep::verbs::report
