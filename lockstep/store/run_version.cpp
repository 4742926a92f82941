// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/run_version.h"

#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/run/saved_tensors.h"
#include "lockstep/store/model_card.h"
#include "lockstep/task/task.h"
#include "lockstep/weights/load_job.h"
#include "lockstep/weights/preprocessing.h"

namespace lockstep::store {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

run::CheckpointPart text_part(const std::string& name, std::string content) {
  const auto bytes = static_cast<int64_t>(content.size());
  return {name, bytes, [content = std::move(content)](const run::Sink& sink) {
            sink(std::as_bytes(std::span(content.data(), content.size())));
          }};
}

// Those members of `from` that are there.
Json some_of(const Json& from, std::initializer_list<const char*> keys) {
  Json some = Json::object();
  for (const char* key : keys) {
    if (const Json* value = from.find(key)) some[key] = *value;
  }
  return some;
}

Json without(Json event, std::initializer_list<const char*> keys) {
  for (const char* key : keys) event.erase(key);
  return event;
}

// The last event of that name, an empty object where there is none.
Json last_event(const std::vector<Json>& events, std::initializer_list<std::string_view> names) {
  Json last = Json::object();
  for (const Json& event : events) {
    for (const std::string_view name : names) {
      if (event.string_or("event", "") == name) last = event;
    }
  }
  return last;
}

// The last evaluation of these weights; null where there was none.
Json metrics_of(const std::vector<Json>& events, const std::optional<int64_t>& step) {
  Json found;
  for (const Json& event : events) {
    const bool is_of_them = event.string_or("event", "") == "evaluate" && step && event.int_or("step", -1) == *step;
    if (is_of_them) found = without(event, {"v", "t", "event", "seconds"});
  }
  return found;
}

// What the run began with, and under which licence; null: with fresh weights.
Json starting_weights(const spec::Job& job) {
  if (job.model.weights.empty()) return {};
  Json from = Json::object();
  from["file"] = job.model.weights;
  std::error_code none;
  if (!std::filesystem::is_regular_file(job.model.weights, none)) return from;
  if (Path(job.model.weights).extension() != ".safetensors") return from;
  const weights::SafetensorsFile file(job.model.weights);
  for (const char* key : {"source", "licence"}) {
    const auto found = file.metadata().find(key);
    if (found != file.metadata().end()) from[key] = found->second;
  }
  return from;
}

void check_result(const TrainedWeights& source, const Json& end) {
  const std::string said = end.string_or("weights_sha256", "");
  if (said.empty() || source.weights != run::RunPaths{source.run}.weights()) return;
  if (base::sha256_of_file(source.weights) == said) return;
  throw Error(Blame::machine, text(source.weights.string(), " is damaged: its checksum is not the journal's"),
              "take a checkpoint (--weights best, or a step), or bring the file back from a copy");
}

std::string sha256_of(const run::CheckpointPart& part) {
  base::Sha256 hash;
  part.write([&](std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.hex();
}

// What the run has of how far to trust these very weights; `source` notes why one that is there is left out.
std::optional<trust::Calibration> calibration_of(TrainedWeights& source, spec::Job job,
                                                 const std::vector<std::string>& classes) {
  std::error_code none;
  if (job.task != spec::Task::classify || !std::filesystem::is_regular_file(source.weights, none)) return std::nullopt;
  auto found = trust::read_calibration(source.run);
  if (!found) return found;
  job.model.classes = task::make_task(job, classes)->num_outputs();
  const std::string other = results::difference(found->terms, results::terms_of(job, source.weights, classes, 0));
  if (other.empty()) return found;
  source.notes.push_back(
      text("the version is not calibrated: ", trust::calibration_file(source.run).string(), ": ", other));
  return std::nullopt;
}

// Of the calibration, for people and for the model card.
Json in_short(const trust::Calibration& calibration) {
  Json row = Json::object();
  row["temperature"] = calibration.temperature;
  row["data"] = calibration.data;
  row["fitted_rows"] = calibration.fitted_rows;
  row["threshold_rows"] = calibration.threshold_rows();
  return row;
}

}  // namespace

// The tensors of the weights, whole, however they were saved.
struct RunVersion::Tensors {
  std::unique_ptr<weights::SafetensorsFile> file;
  std::deque<std::vector<std::byte>> memory;
  std::vector<weights::TensorView> views;
  weights::TensorMetadata metadata;
  std::string job;  // the document, as it is
  std::optional<std::string> plan;

  explicit Tensors(const Path& weights) {
    const Path checkpoint = weights.parent_path();
    if (!run::is_checkpoint(checkpoint)) {
      file = std::make_unique<weights::SafetensorsFile>(weights);
      views = file->tensors();
      metadata = file->metadata();
      return;
    }
    const run::SavedTensors saved(checkpoint, weights.stem().string());
    views.reserve(saved.entries().size());
    for (size_t i = 0; i < saved.entries().size(); ++i) {
      const auto& entry = saved.entries()[i];
      auto& bytes = memory.emplace_back(weights::tensor_bytes(entry.dtype, entry.shape).value());
      saved.read(i, bytes);
      views.push_back({entry.name, entry.dtype, entry.shape, bytes});
    }
  }

  run::CheckpointPart part() const { return run::safetensors_part("weights.safetensors", views, metadata); }

  int64_t elements() const {
    int64_t sum = 0;
    for (const auto& view : views) sum += static_cast<int64_t>(view.bytes.size() / weights::dtype_bytes(view.dtype));
    return sum;
  }
};

RunVersion::RunVersion(const Path& run, const std::string& which, const std::string& licence)
    : source_(find_weights(run, which)) {
  if (source_.run.empty()) {
    throw Error(Blame::user, text(run.string(), ": not a run folder"), "give the folder that `lockstep train` made");
  }
  const run::RunPaths paths{source_.run};
  std::vector<Json> events;
  if (base::is_there(paths.journal())) events = run::read_journal(paths.journal()).effective();
  check_result(source_, last_event(events, {"end"}));
  const spec::Job job = weights::load_job_for(source_.weights, source_.job).job;
  tensors_ = std::make_unique<Tensors>(source_.weights);
  tensors_->job = base::read_file(source_.job);
  if (base::is_there(paths.plan())) tensors_->plan = base::read_file(paths.plan());
  std::vector<std::string> classes;
  if (task::make_task(job)->classes() != task::Classes::none) classes = class_names(source_, job);

  const Json start = last_event(events, {"start", "resume"});
  Json data = some_of(start, {"train_samples", "validate_samples", "data_sha256"});
  data["train"] = job.data.train;
  data["validate"] = job.data.validate;
  Json weights_row = Json::object();
  weights_row["which"] = source_.which;
  if (source_.step) weights_row["step"] = *source_.step;
  weights_row["elements"] = tensors_->elements();
  about_ = Json::object();
  about_["format"] = 1;
  about_["job"] = job.name;
  about_["task"] = name_of(job.task);
  about_["network"] = job.model.name;
  about_["weights"] = std::move(weights_row);
  about_["classes"] = Json::array_of(classes);
  about_["metrics"] = metrics_of(events, source_.step);
  about_["data"] = std::move(data);
  about_["made_by"] = some_of(
      start, {"version", "commit", "libtorch", "device", "precision", "ranks", "global_batch", "seed", "job_sha256"});
  about_["training"] = some_of(last_event(events, {"end"}), {"step", "seconds", "state_sha256"});
  about_["starts_from"] = starting_weights(job);
  about_["licence"] = licence.empty() ? Json() : Json(licence);

  auto& metadata = tensors_->metadata;
  metadata["format"] = "pt";
  metadata["model"] = job.model.name;
  metadata["classes"] = Json::array_of(classes).dump(-1);
  if (!licence.empty()) metadata["licence"] = licence;
  weights::add_to(metadata, weights::preprocessing_of(job.data));

  calibration_ = calibration_of(source_, job, classes);
  about_["calibration"] = calibration_ ? in_short(*calibration_) : Json();
  // The tensors are the same, the metadata and so the checksum of the file are not.
  if (calibration_) calibration_->terms.weights_sha256 = sha256_of(tensors_->part());
}

RunVersion::~RunVersion() = default;

std::vector<run::CheckpointPart> RunVersion::parts() const {
  const spec::Job job = weights::load_job_for(source_.weights, source_.job).job;
  std::vector<run::CheckpointPart> parts;
  parts.push_back(text_part("README.md", model_card(about_, job)));
  parts.push_back(text_part("about.json", about_.dump() + "\n"));
  parts.push_back(text_part("job.json", tensors_->job));
  if (tensors_->plan) parts.push_back(text_part("plan.json", *tensors_->plan));
  if (calibration_) {
    const std::string name = trust::calibration_file("").string();
    parts.push_back(text_part(name, calibration_->to_json().dump() + "\n"));
  }
  parts.push_back(tensors_->part());
  return parts;
}

}  // namespace lockstep::store
