// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/python_steps.h"

#include <cmath>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/choice_value.h"

namespace lockstep::forecast {
namespace {

double above_zero(const base::Json& value) {
  if (value.as_double() > 0 && std::isfinite(value.as_double())) return value.as_double();
  throw base::Error(base::Blame::user, base::text(value.where(), ": this must be above 0"),
                    "make the document with scripts/fit_foreign.py");
}

}  // namespace

double PythonSteps::factor(const Operator& op, Layout layout) const {
  if (const auto named = names.find(op.name); named != names.end()) return named->second;
  const auto found = classes.find({op.kind, layout});
  return found == classes.end() ? 1 : found->second;
}

PythonSteps parse_python_steps(const base::Json& document) {
  PythonSteps all;
  all.host = above_zero(document.at("host"));
  all.steps = document.at("steps").as_int();
  all.spread = {above_zero(document.at("low")), above_zero(document.at("high"))};
  for (const auto& row : document.at("classes").items()) {
    all.classes[{spec::choice_value<OperatorClass>(row.at("class")), spec::choice_value<Layout>(row.at("layout"))}] =
        above_zero(row.at("factor"));
  }
  for (const auto& [name, value, position] : document.at("names").members()) all.names[name] = above_zero(value);
  return all;
}

PythonSteps load_python_steps() {
  for (const auto& file : base::embedded_files()) {
    if (file.name.ends_with("forecast/python_steps.json"))
      return parse_python_steps(base::parse_json(file.content, std::string(file.name)));
  }
  throw base::Error(base::Blame::bug, "python_steps.json is not in the program");
}

bool is_python_step(const Recording& recording) {
  return recording.source.starts_with("torch ");
}

}  // namespace lockstep::forecast
