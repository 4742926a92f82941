// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/report/report.h"

#include <cmath>
#include <ctime>
#include <optional>

#include "lockstep/base/base64.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/version.h"
#include "lockstep/watching/compare.h"
#include "lockstep/watching/run_watch.h"
#include "lockstep/web/page.h"

namespace lockstep::verbs::report {
namespace {

using base::Json;
using base::Path;

constexpr size_t kMostPoints = 600;
constexpr size_t kMostClasses = 120;  // of the heat map: more cells than that a screen cannot show
constexpr uint64_t kMostThumbnailBytes = 64 << 10, kMostAnimationBytes = 1 << 20;
constexpr base::JsonLimits kLargeJson{.max_bytes = size_t{256} << 20};

// The last part of the name only: a hostile eval.json cannot make the report carry another file away.
std::optional<std::string> thumbnail(const run::RunPaths& paths, const std::string& picture) {
  const Path file = paths.pictures() / Path(picture).filename();
  if (picture.empty() || !std::filesystem::is_regular_file(file)) return std::nullopt;
  const bool is_animation = file.extension() == ".png";
  const uint64_t most = is_animation ? kMostAnimationBytes : kMostThumbnailBytes;
  if (std::filesystem::file_size(file) > most) return std::nullopt;
  const std::string bytes = base::read_file(file, most);
  if (!bytes.starts_with(is_animation ? "\x89PNG" : "\xff\xd8")) return std::nullopt;
  return base::text("data:image/", is_animation ? "png" : "jpeg", ";base64,", base::to_base64(bytes));
}

// Names of pictures become the pictures.
void show_pictures(Json& list, const run::RunPaths& paths) {
  Json pictures = Json::array();
  for (const auto& item : list.items()) {
    Json shown = item;
    for (const char* key : {"picture", "heat", "animation"}) {
      if (auto uri = thumbnail(paths, item.string_or(key, ""))) shown[key] = *uri;
    }
    pictures.push_back(std::move(shown));
  }
  list = std::move(pictures);
}

// What a task drew on a picture is told better by it than by its record.
void tell_drawn(Json& list) {
  Json all = Json::array();
  for (const auto& item : list.items()) {
    Json mistake = item;
    mistake["drawn"] = mistake.contains("record");
    mistake.erase("record");
    all.push_back(std::move(mistake));
  }
  list = std::move(all);
}

Json read_evaluation(const run::RunPaths& paths) {
  Json evaluation = base::read_json(paths.evaluation(), kLargeJson);
  if (const Json* classes = evaluation.find("classes"); classes && classes->size() > kMostClasses) {
    evaluation.erase("confusion");
  }
  if (Json* worst = evaluation.find("worst")) {
    show_pictures(*worst, paths);
    tell_drawn(*worst);
  }
  if (Json* trust = evaluation.find("trust"); trust && trust->is_object()) {
    for (const char* list : {"labels", "leakage"}) {
      Json* all = trust->find(list);
      if (Json* shown = all && all->is_object() ? all->find("shown") : nullptr) show_pictures(*shown, paths);
    }
  }
  return evaluation;
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

// All but what eval found.
Json gather_log(const run::RunPaths& paths) {
  watching::RunWatch watch(paths);
  watch.poll();
  const watching::RunLog& log = watch.log();
  Json data = Json::object();
  data["name"] = std::filesystem::absolute(paths.root).lexically_normal().filename().string();
  data["version"] = LOCKSTEP_VERSION;
  data["made"] = static_cast<int64_t>(std::time(nullptr));
  data["status"] = watching::words_for(watch.status());
  if (!log.start.is_null()) data["start"] = log.start;
  if (!log.end.is_null()) data["end"] = log.end;
  if (!log.promise.is_null()) data["promise"] = log.promise;
  data["steps"] = watching::thin_steps(log, kMostPoints);
  if (const double rate = watching::mean_rate(log); !std::isnan(rate)) data["samples_per_second"] = rate;
  if (const double joules = watching::total_joules(log); !std::isnan(joules)) data["joules"] = joules;
  data["epochs"] = Json::array(log.epochs);
  data["evaluations"] = Json::array(log.evaluations);
  data["bad_samples"] = Json::array(log.bad_samples);
  data["time"] = to_json(log.split());
  data["sessions"] = Json::array(log.sessions);
  data["slowness"] = to_json(watch.slowness());
  return data;
}

}  // namespace

Json gather_report(const run::RunPaths& paths, const std::string& weights) {
  Json data = gather_log(paths);
  if (std::filesystem::exists(paths.evaluation())) data["evaluation"] = read_evaluation(paths);
  if (!weights.empty()) {
    data["weights"] = weights;
    if (const Json* evaluation = data.find("evaluation")) check_weights(*evaluation, weights, paths.root);
  }
  if (std::filesystem::exists(paths.job())) data["job"] = base::read_json(paths.job());
  return data;
}

Json gather_comparison(const std::vector<run::RunPaths>& runs) {
  Json data = Json::object();
  data["version"] = LOCKSTEP_VERSION;
  data["made"] = static_cast<int64_t>(std::time(nullptr));
  data["differences"] = to_json(watching::compare_runs(runs));
  data["runs"] = Json::array();
  for (const auto& paths : runs) {
    Json one = gather_log(paths);
    one["folder"] = paths.root.string();
    data["runs"].push_back(std::move(one));
  }
  return data;
}

std::string render_comparison(const Json& data) {
  std::vector<std::string> names;
  names.reserve(data.at("runs").size());
  for (const auto& run : data.at("runs").items()) names.push_back(run.at("folder").as_string());
  return web::render_page("compare", base::join(names, ", "), data);
}

std::string render_report(const Json& data) {
  return web::render_page("report", title_of(data), data);
}

}  // namespace lockstep::verbs::report
