// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/task.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/caption.h"
#include "lockstep/task/classify.h"
#include "lockstep/task/detect.h"
#include "lockstep/task/instances.h"
#include "lockstep/task/multilabel.h"
#include "lockstep/task/nowcast.h"
#include "lockstep/task/ordinal.h"
#include "lockstep/task/regress.h"
#include "lockstep/task/segment.h"
#include "lockstep/task/text.h"

namespace lockstep::task {

const FieldValues& Rows::field(const std::string& name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const FieldValues& values) { return values.field.name == name; });
  base::ensure(found != fields.end(), "rows have the field that is asked for");
  return *found;
}

const OutputValues& Rows::output(const std::string& name) const {
  const auto found =
      std::find_if(outputs.begin(), outputs.end(), [&](const OutputValues& values) { return values.name == name; });
  base::ensure(found != outputs.end(), "rows have the output that is asked for");
  return *found;
}

ScoreSummary Score::summary() const {
  ScoreSummary summary{headline(), figures()};
  const base::Json all = summary.figures;
  for (const auto& member : all.members()) {  // as it comes back from a file
    if (member.value.is_number() && !std::isfinite(member.value.as_double()))
      summary.figures[member.key] = base::Json();
  }
  return summary;
}

bool Score::is_sound() const {
  return std::isfinite(headline().value);
}

std::string Score::to_text() const {
  return base::text("  ", line(), "\n");
}

std::vector<int64_t> Score::worst() const {
  std::vector<int64_t> ids;
  const base::Json all = to_json();
  for (const auto& sample : all.at("worst").items()) ids.push_back(sample.at("sample").as_int());
  return ids;
}

base::Json to_json(const Headline& headline) {
  base::Json all = base::Json::object();
  all["name"] = headline.name;
  all["value"] = headline.value;
  all["higher_is_better"] = headline.higher_is_better;
  all["text"] = headline.text;
  return all;
}

Headline headline_from(const base::Json& value) {
  const base::Json& number = value.at("value");  // null: it was not finite
  return {value.at("name").as_string(), number.is_null() ? std::nan("") : number.as_double(),
          value.at("higher_is_better").as_bool(), value.at("text").as_string()};
}

std::optional<double> ScoreSummary::figure(std::string_view name) const {
  const base::Json* value = figures.find(name);
  if (!value || !value->is_number() || !std::isfinite(value->as_double())) return std::nullopt;
  return value->as_double();
}

std::string ScoreSummary::text() const {
  if (!figures.contains("loss")) return headline.text;
  const auto loss = figure("loss");
  return base::text(headline.text, ", loss ", figures.contains("loss_cut") ? "at least " : "",
                    loss ? base::fixed(*loss, 4) : "not finite");
}

base::Json ScoreSummary::to_json() const {
  base::Json all = base::Json::object();
  all["headline"] = task::to_json(headline);
  all["figures"] = figures;
  return all;
}

ScoreSummary ScoreSummary::from_json(const base::Json& value) {
  return {headline_from(value.at("headline")), value.at("figures")};
}

std::unique_ptr<Task> make_task(const spec::Job& job, std::vector<std::string> classes) {
  switch (job.task) {
    case spec::Task::classify:
      return std::make_unique<Classify>(job, std::move(classes));
    case spec::Task::regress:
      return make_regress(job);
    case spec::Task::multilabel:
      return make_multilabel(job);
    case spec::Task::detect:
      return make_detect(job, std::move(classes));
    case spec::Task::instances:
      return make_instances(job, std::move(classes));
    case spec::Task::ordinal:
      return make_ordinal(job, std::move(classes));
    case spec::Task::nowcast:
      return make_nowcast(job);
    case spec::Task::segment:
      return make_segment(job, std::move(classes));
    case spec::Task::caption:
      return make_caption(job, std::move(classes));
    case spec::Task::text:
      return make_text(job, std::move(classes));
  }
  return nullptr;
}

}  // namespace lockstep::task
