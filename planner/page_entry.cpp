// SPDX-License-Identifier: Apache-2.0
// What the page calls: `lockstep plan` with the recordings of the zoo in place of a simulated GPU. Files that a word
// names lie in Emscripten's file system in memory, where the page puts them.
#include <emscripten.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/planning/document.h"
#include "lockstep/planning/plan.h"
#include "lockstep/planning/recorded_zoo.h"
#include "lockstep/planning/request.h"
#include "lockstep/version.h"

namespace {

using namespace lockstep;
using base::Json;

// As in lockstep/verbs/plan/command.cpp, less what writes files and what answers other questions.
const base::CommandLine& plan_line() {
  static const base::CommandLine line{"plan",
                                      "[JOB]",
                                      "what a job will need",
                                      {{"--on", "MACHINES", ""},
                                       {"--gpus", "N,N...", ""},
                                       {"--set", "KEY=VALUE", ""},
                                       {"--samples", "N", ""},
                                       {"--validation-samples", "N", ""},
                                       {"--assume", "KEY=VALUE", ""},
                                       {"--no-search", "", ""},
                                       {"--levers", "LIST", ""},
                                       {"--recording", "FILE", ""},
                                       {"--batch", "N", ""},
                                       {"--epochs", "N", ""},
                                       {"--steps", "N", ""}},
                                      ""};
  return line;
}

const catalogue::Catalogue& the_catalogue() {
  static const catalogue::Catalogue all = catalogue::load_embedded();
  return all;
}

const forecast::Calibration& the_calibration() {
  static const forecast::Calibration all = forecast::load_calibration();
  return all;
}

planning::RecordedZoo& the_zoo(std::vector<planning::ZooEntry>* fresh = nullptr) {
  static auto zoo = std::make_unique<planning::RecordedZoo>(std::vector<planning::ZooEntry>());
  if (fresh) zoo = std::make_unique<planning::RecordedZoo>(std::move(*fresh));
  return *zoo;
}

Json error_json(const base::Error& error) {
  Json row = Json::object();
  row["what"] = std::string(error.what());
  row["fix"] = error.fix();
  return row;
}

Json plan(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(plan_line(), words);
  planning::PlanRequest request = planning::request_of(arguments, the_catalogue());
  request.tracer = &the_zoo();
  return planning::to_json(planning::make_plan(request, the_catalogue(), the_calibration()));
}

// Valid until the next call.
const char* give(std::string text) {
  static std::string given;
  given = std::move(text);
  return given.c_str();
}

template <class Work>
const char* answer(const char* name, const Work& work) {
  Json all = Json::object();
  try {
    all[name] = work();
  } catch (const base::Error& error) {
    all["error"] = error_json(error);
  } catch (const std::exception& error) {
    all["error"] = error_json(base::Error(base::Blame::bug, error.what(), "please report it with the job"));
  }
  return give(all.dump(-1));
}

}  // namespace

extern "C" {

// The recordings of one network, in place of those before: planner/record_zoo.cpp wrote them.
EMSCRIPTEN_KEEPALIVE const char* planner_take_network(const char* bytes, int size) {
  return answer("taken", [&] {
    auto entries = planning::parse_zoo({bytes, static_cast<size_t>(size)}, "the recordings of the page");
    const auto count = static_cast<int64_t>(entries.size());
    the_zoo(&entries);
    return Json(count);
  });
}

// {"plan": ...} or {"error": {"what", "fix"}} for a JSON list of words, as they stand behind `lockstep plan`.
EMSCRIPTEN_KEEPALIVE const char* planner_plan(const char* words) {
  return answer("plan", [&] {
    std::vector<std::string> list;
    const Json given = base::parse_json(words, "words");
    for (const Json& word : given.items()) list.push_back(word.as_string());
    return plan(list);
  });
}

// What there is to choose from.
EMSCRIPTEN_KEEPALIVE const char* planner_catalogue() {
  return answer("catalogue", [] {
    Json all = Json::object();
    all["version"] = LOCKSTEP_VERSION;
    all["gpus"] = Json::array();
    for (const auto& gpu : the_catalogue().gpus) {
      Json row = Json::object();
      row["id"] = gpu.id;
      row["name"] = gpu.name;
      all["gpus"].push_back(row);
    }
    all["machines"] = Json::array();
    for (const auto& machine : the_catalogue().machines) {
      Json row = Json::object();
      row["id"] = machine.id;
      row["name"] = machine.name;
      row["plannable"] = !machine.gpus.empty();
      all["machines"].push_back(row);
    }
    return all;
  });
}
}
