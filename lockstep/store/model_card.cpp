// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/model_card.h"

#include <vector>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/task/task.h"

namespace lockstep::store {
namespace {

using base::Json;
using base::text;

// Names are anybody's: nothing in them is Markdown or HTML.
std::string plain(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (static_cast<unsigned char>(c) < ' ') {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_{}[]()#|!>~").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string words_of(const Json& value) {
  if (value.is_null()) return "not stated";
  return plain(value.is_string() ? value.as_string() : value.dump(-1));
}

std::string row(const std::string& key, const std::string& value) {
  return text("| ", key, " | ", value, " |\n");
}

std::string rows_of(const Json& object) {
  std::string rows;
  for (const auto& member : object.members()) {
    if (!member.value.is_object()) rows += row(plain(member.key), words_of(member.value));
  }
  return rows;
}

std::string how_to_use(const spec::Job& job, const task::NetworkWords& words) {
  if (!words.takes.empty()) return words.takes;
  return text("Images of ", spec::to_text(job.data.image_size), " pixels (the middle ", job.data.center_crop,
              " of the short side), values from 0 to 1, normalised with mean ", Json::array_of(job.data.mean).dump(-1),
              " and std ", Json::array_of(job.data.std).dump(-1));
}

std::string measured(const Json& metrics) {
  if (metrics.is_null()) return "Not measured: the run had no validation data at this step.\n";
  std::string out;
  if (const Json* headline = metrics.find("headline")) {
    out += text("**", plain(headline->string_or("text", "")), "** on ", metrics.int_or("samples", 0), " images of the ",
                plain(metrics.string_or("split", "validation")), " data.\n\n");
  }
  return out + "| figure | value |\n|---|---|\n" + rows_of(metrics);
}

std::string calibrated(const Json* calibration) {
  if (!calibration || calibration->is_null()) {
    return "\nConfidences are as the network gives them: these weights were not calibrated.\n";
  }
  return text("\nConfidences are calibrated: temperature ", base::fixed(calibration->at("temperature").as_double(), 3),
              " from ", calibration->at("fitted_rows").as_int(), " images of ", words_of(calibration->at("data")),
              "; sets with a promise (`--coverage`) and abstention from ", calibration->at("threshold_rows").as_int(),
              " others (docs/trust.md).\n");
}

std::string class_list(const Json& classes) {
  std::string out;
  for (const Json& name : classes.items()) out += text(out.empty() ? "" : ", ", plain(name.as_string()));
  return out.empty() ? "" : text("\n", classes.size(), " classes, in the order of the outputs: ", out, ".\n");
}

std::string licence_of(const Json& about) {
  std::string out = text("Of these weights: ", words_of(about.at("licence")), ".\n");
  const Json& from = about.at("starts_from");
  if (from.is_null()) return out + "Training began with fresh weights.\n";
  return out + text("Training began with ", words_of(from.at("file")),
                    ", licence: ", plain(from.string_or("licence", "not stated")), ".\n");
}

}  // namespace

std::string model_card(const Json& about, const spec::Job& job) {
  const Json& weights = about.at("weights");
  const task::NetworkWords words = task::make_task(job)->network_words();
  std::string card = text("# ", plain(job.name), "\n\n", plain(job.model.name), ", ",
                          base::format_short_count(static_cast<double>(weights.at("elements").as_int())),
                          " numbers: ", words.gives, ".\n");
  card += class_list(about.at("classes"));
  card += text("\nWeights: ", words_of(weights.at("which")), ".\n");
  card += text("\n## How to use it\n", how_to_use(job, words), ". `lockstep predict` does all of it:\n\n");
  card += text("    lockstep predict STORE/NAME:TAG ", words.takes.empty() ? "IMAGES" : "FILES", "\n");
  card += text("\n## How good it is\n", measured(about.at("metrics")));
  if (job.task == spec::Task::classify) card += calibrated(about.find("calibration"));
  card += text("\n## What it learnt from\n| data | |\n|---|---|\n", rows_of(about.at("data")));
  card +=
      "\n`data_sha256` is the fingerprint of the training samples (docs/formats/journal.md). What was not among them "
      "it "
      "has not learnt: images of another kind, camera or place need a test of their own.\n";
  card += text("\n## How it was made\n| | |\n|---|---|\n", rows_of(about.at("made_by")), rows_of(about.at("training")));
  card += text("\n## Licence\n", licence_of(about));
  return card;
}

}  // namespace lockstep::store
