// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/training_features.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::trust {
namespace {

using base::Blame;
using base::Error;
using base::text;

template <class Value>
weights::TensorView view_of(const char* name, weights::Dtype type, std::vector<int64_t> shape,
                            const std::vector<Value>& values) {
  return {name, type, std::move(shape), std::as_bytes(std::span(values))};
}

template <class Value>
std::vector<Value> values_of(const weights::SafetensorsFile& file, const char* name, weights::Dtype type) {
  const weights::TensorView* view = file.find(name);
  if (!view || view->dtype != type) {
    throw Error(Blame::user, text("the file of features has no tensor '", name, "'"),
                "make it again: lockstep eval RUN --calibrate --features");
  }
  std::vector<Value> values(view->bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), view->bytes.data(), view->bytes.size());
  return values;
}

std::string metadata_of(const weights::SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

}  // namespace

TrainingFeatures make_training_features(const ClassRows& rows, std::vector<std::string> names,
                                        std::string weights_sha256) {
  base::ensure(rows.size() > 0 && rows.width > 0, "there are rows with features");
  TrainingFeatures result;
  result.weights_sha256 = std::move(weights_sha256);
  result.width = rows.width;
  result.classes = rows.classes;
  result.features = rows.features;
  result.labels = rows.labels;
  result.names = std::move(names);
  base::ensure(result.names.size() == result.labels.size(), "a name for each row");
  result.gaussians = fit_gaussians(result.rows());
  return result;
}

base::Path features_file(const base::Path& run) {
  return run / "features.safetensors";
}

void write_features(const base::Path& run, const TrainingFeatures& features) {
  using weights::Dtype;
  const auto rows = static_cast<int64_t>(features.labels.size());
  const int64_t width = features.width;
  const std::string joined = base::join(features.names, "\n");
  const std::vector<uint8_t> names(joined.begin(), joined.end());
  const auto& gaussians = features.gaussians;
  const auto means = static_cast<int64_t>(gaussians.means.size()) / width;
  const std::vector<weights::TensorView> tensors{
      view_of("features", Dtype::F32, {rows, width}, features.features),
      view_of("labels", Dtype::I64, {rows}, features.labels),
      view_of("names", Dtype::U8, {static_cast<int64_t>(names.size())}, names),
      view_of("factor", Dtype::F64, {width, width}, gaussians.factor),
      view_of("means", Dtype::F64, {means, width}, gaussians.means)};
  weights::write_safetensors(features_file(run), tensors,
                             {{"weights_sha256", features.weights_sha256}, {"classes", text(features.classes)}});
}

std::optional<TrainingFeatures> read_features(const base::Path& run, const std::string& weights_sha256) {
  using weights::Dtype;
  const base::Path path = features_file(run);
  if (run.empty() || !base::is_there(path)) return std::nullopt;
  const std::string again = text("lockstep eval ", base::shell_path(run.string()), " --calibrate --features");
  const weights::SafetensorsFile file(path);
  TrainingFeatures result;
  result.weights_sha256 = metadata_of(file, "weights_sha256");
  if (result.weights_sha256 != weights_sha256) {
    throw Error(
        Blame::user,
        text(path.string(), ": these features are of other weights, of sha256 ", result.weights_sha256.substr(0, 12)),
        again);
  }
  result.features = values_of<float>(file, "features", Dtype::F32);
  result.labels = values_of<int64_t>(file, "labels", Dtype::I64);
  const auto names = values_of<uint8_t>(file, "names", Dtype::U8);
  result.names = base::split(std::string(names.begin(), names.end()), '\n');
  result.gaussians.factor = values_of<double>(file, "factor", Dtype::F64);
  result.gaussians.means = values_of<double>(file, "means", Dtype::F64);
  const auto rows = static_cast<int64_t>(result.labels.size());
  result.width = rows > 0 ? static_cast<int64_t>(result.features.size()) / rows : 0;
  result.gaussians.width = result.width;
  bool is_whole = result.width > 0 && result.names.size() == result.labels.size() &&
                  static_cast<int64_t>(result.features.size()) == rows * result.width;
  for (const int64_t label : result.labels) {
    result.classes = std::max(result.classes, label + 1);
    is_whole = is_whole && label >= 0;
  }
  const auto width = static_cast<size_t>(std::max<int64_t>(1, result.width));
  is_whole = is_whole && result.gaussians.factor.size() == width * width && result.gaussians.means.size() % width == 0;
  if (!is_whole) {
    throw Error(Blame::user, text(path.string(), ": the features are damaged"), again);
  }
  return result;
}

}  // namespace lockstep::trust
