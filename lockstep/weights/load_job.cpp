// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/load_job.h"

#include <filesystem>

#include "lockstep/base/text.h"
#include "lockstep/spec/override.h"
#include "lockstep/spec/recipe.h"
#include "lockstep/weights/preprocessing.h"

namespace lockstep::weights {

using base::Json;
using base::text;

namespace {

// model.weights of the document; empty: none.
std::string weights_of(const Json& document) {
  const Json* model = document.is_object() ? document.find("model") : nullptr;
  const Json* weights = model && model->is_object() ? model->find("weights") : nullptr;
  return weights && weights->is_string() ? weights->as_string() : "";
}

bool says_mean(const Json& document) {
  const Json* data = document.find("data");
  return data && data->is_object() && data->contains("mean");
}

LoadedJob complete(Json document, const std::string& source) {
  LoadedJob loaded;
  if (!document.is_object()) return {spec::parse_job(document)};  // which says so
  std::string recipe = spec::add_recipe(document);
  auto preprocessing = source.empty() ? std::nullopt : read_preprocessing(source);
  if (preprocessing && !recipe.empty() && spec::takes_any_size(document)) {
    preprocessing = whole_image(*preprocessing);
  }
  std::vector<std::string> warnings;
  if (preprocessing) {
    warnings = add_to(document, *preprocessing, source);
  } else if (!recipe.empty() && std::filesystem::exists(source) && !says_mean(document)) {
    warnings.push_back(text("warning: ", source, " does not say how its images were normalised; ImageNet's data.mean ",
                            "and data.std are taken (files that `lockstep get` and `train` write say it)"));
  }
  loaded.job = spec::parse_job(document);
  if (!recipe.empty()) {
    const spec::Data& data = loaded.job.data;
    loaded.notes.push_back(
        text(recipe, "; ", data.center_crop == 1 ? "whole images" : "images", " at ", spec::to_text(data.image_size),
             " pixels (job.json of the run has all of it; training.optimizer.lr alone changes its rate; a "
             "schedule, phases, or an optimizer with epochs are a recipe of the job's own)"));
  }
  for (auto& warning : warnings) loaded.notes.push_back(std::move(warning));
  return loaded;
}

Json with_sets(const base::Path& path, const std::vector<std::string>& sets) {
  Json document = base::read_json(path);
  spec::apply_sets(spec::job_section(), document, sets);
  return document;
}

}  // namespace

LoadedJob load_job(const base::Path& path, const std::vector<std::string>& sets) {
  Json document = with_sets(path, sets);
  const std::string source = weights_of(document);
  return complete(std::move(document), source);
}

LoadedJob load_job_for(const base::Path& source, const base::Path& path, const std::vector<std::string>& sets) {
  return complete(with_sets(path, sets), source.string());
}

}  // namespace lockstep::weights
