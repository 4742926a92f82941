// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/recipe.h"

#include "lockstep/base/text.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {

using base::Json;
using base::text;

namespace {

// Measured on 37 breeds of the Oxford-IIIT Pet photographs with EfficientNet-Lite0: examples/pets/five_fold.py.
constexpr double kHeadEpochs = 20;
constexpr double kWholeEpochs = 2;
constexpr double kRate = 1e-3;
constexpr double kWholeRateScale = 0.03;
constexpr double kWeightDecay = 0.01;
constexpr double kLabelSmoothing = 0.1;
constexpr double kSmallestCrop = 0.6;
// Tasks without a measured recipe: slow enough to keep what trained weights know.
constexpr double kGentleRate = 1e-4;

const Json* member(const Json& object, std::string_view key) {
  return object.is_object() ? object.find(key) : nullptr;
}

bool starts_from_weights(const Json& document) {
  const Json* model = member(document, "model");
  const Json* weights = model ? member(*model, "weights") : nullptr;
  return weights && weights->is_string() && !weights->as_string().empty();
}

bool is_true(const Json& section, std::string_view key, bool otherwise) {
  const Json* value = member(section, key);
  return value && value->kind() == Json::Kind::boolean ? value->as_bool() : otherwise;
}

void add_unless_stated(Json& section, const char* key, Json value) {
  if (!section.contains(key)) section[key] = std::move(value);
}

Json phases(double whole_epochs, bool caches, bool flips) {
  Json head = Json::object();
  head["epochs"] = kHeadEpochs;
  head["train_from"] = "head";
  if (caches) head["cache_features"] = true;
  if (caches && flips) head["cache_flips"] = true;
  Json whole = Json::object();
  whole["epochs"] = whole_epochs;
  whole["lr_scale"] = kWholeRateScale;
  whole["freeze_norm"] = true;
  return Json::array({std::move(head), std::move(whole)});
}

// Settings of adamw alone are no recipe, for they have no length: they change the one that is added.
bool has_own_recipe(const Json& training) {
  if (training.contains("schedule") || training.contains("phases") || training.contains("steps")) return true;
  const Json* optimizer = training.find("optimizer");
  if (!optimizer) return false;
  const Json* name = member(*optimizer, "name");
  const bool is_adamw = !name || (name->is_string() && name->as_string() == "adamw");
  return !optimizer->is_object() || !is_adamw || training.contains("epochs");
}

// The measured recipe is of an answer for a whole image, which may be mirrored and whose features may be kept.
bool answers_for_an_image(const std::string& task) {
  return task == "classify" || task == "ordinal" || task == "multilabel" || task == "regress";
}

// adamw at `rate`, where the job says nothing else. Gives the rate.
double add_optimizer(Json& training, double rate) {
  if (!training.contains("optimizer")) training["optimizer"] = Json::object();
  Json& optimizer = training["optimizer"];
  add_unless_stated(optimizer, "name", "adamw");
  add_unless_stated(optimizer, "lr", rate);
  add_unless_stated(optimizer, "weight_decay", kWeightDecay);
  return optimizer.at("lr").is_number() ? optimizer.at("lr").as_double() : rate;  // else the parser says
}

}  // namespace

std::string add_recipe(Json& document) {
  if (!starts_from_weights(document)) return "";
  if (!document.contains("training")) document["training"] = Json::object();
  Json& training = document["training"];
  if (!training.is_object()) return "";  // the parser says so
  if (has_own_recipe(training)) return "";
  const std::string task = document.string_or("task", "classify");
  if (!answers_for_an_image(task)) {
    const double rate = add_optimizer(training, kGentleRate);
    return text("recipe: the whole network by adamw at ", rate,
                ", which keeps what the weights know; none was measured for ", "task ", task);
  }
  const Json* epochs = training.find("epochs");
  if (epochs && (!epochs->is_number() || epochs->as_double() <= 0)) return "";
  const double whole_epochs = epochs ? epochs->as_double() : kWholeEpochs;
  training.erase("epochs");

  // Bits of cached features depend on the ranks, those of virtual ranks must not.
  const Json* slices = training.find("virtual_ranks");
  const bool caches = !slices || !slices->is_integer() || slices->as_int() == 0;
  const Json* data = document.find("data");
  const bool flips = !data || is_true(*data, "flip", true);
  const double rate = add_optimizer(training, kRate);
  training["phases"] = phases(whole_epochs, caches, flips);
  if (task == "classify") add_unless_stated(training, "label_smoothing", kLabelSmoothing);
  if (document["model"].string_or("name", "") == "googlenet") {  // held norms leave its extra heads without a gradient
    add_unless_stated(document["model"], "auxiliary_heads", false);
  }
  if (!document.contains("data")) document["data"] = Json::object();
  if (document["data"].is_object()) add_unless_stated(document["data"], "crop_scale_min", kSmallestCrop);
  if (flips) {
    if (!document.contains("evaluation")) document["evaluation"] = Json::object();
    if (document["evaluation"].is_object()) add_unless_stated(document["evaluation"], "views", "flip");
  }
  return text("recipe: the head for ", kHeadEpochs, " epochs", caches ? " on cached features" : "",
              ", then the whole network for ", whole_epochs, " with its batch norms held; adamw at ", rate, ", then ",
              rate * kWholeRateScale, flips ? "; mirror images too" : "");
}

bool takes_any_size(const Json& document) {
  const Json* model = member(document, "model");
  const Json* name = model ? member(*model, "name") : nullptr;
  if (!name || !name->is_string()) return false;
  for (const char* family :
       {"resnet", "densenet", "googlenet", "efficientnet", "mobilenet", "convnext", "squeezenet"}) {
    if (name->as_string().starts_with(family)) return true;
  }
  return false;
}

}  // namespace lockstep::spec
