// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/GradMode.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/loader/loader.h"
#include "lockstep/sources/image_columns.h"
#include "lockstep/task/task.h"
#include "lockstep/training/inference.h"
#include "lockstep/training/trained.h"
#include "lockstep/verbs/predict/trusted.h"

namespace lockstep::verbs::predict {

struct Prediction {
  std::string path;
  base::Json record;  // as the task gives it; null when the image could not be read
  std::string error;  // why it could not be read

  bool failed() const { return record.is_null(); }
};

// The images behind the arguments: a file as it is, a folder with all images (by their names) below it, sorted.
// User error for a path that does not exist and for a folder without an image.
std::vector<std::string> images_of(const std::vector<std::string>& paths);

// The same as a collection without classes; a folder of shards, given alone, with all its images.
loader::Collection image_collection(const std::vector<std::string>& paths);

// What can be listed, and refused, before a network is loaded: images. None where a list of sentences or shards are
// among the paths: the network says what they are.
std::optional<loader::Collection> plain_images(const std::vector<std::string>& paths);

// The samples behind the arguments as the network takes them: images, `listed` where they were before; or sentences,
// those of shards, or the lines of a .txt and the rows of a .csv, .tsv, .json or .jsonl with a column of sentences.
loader::Collection collection_for(const training::Trained& trained, const std::vector<std::string>& paths,
                                  std::optional<loader::Collection> listed);

struct PredictOptions {
  int64_t top = 5;  // answers in a record
  at::Device device = at::kCPU;
  std::function<void(const Prediction&)> each = {};  // told in order, as soon as it is known
  std::function<void()> got_on = {};                 // after each batch of this rank
  const TrustedAnswers* trusted = nullptr;           // how far to trust them; null: nobody asks. Outlives the work
  const std::vector<training::Trained>* ensemble = nullptr;  // further networks; the answer is the mean. Likewise
  const sources::ImageColumns* columns = nullptr;            // of the collection's images; null: none. Likewise
};

// Images of a pass.
int64_t prediction_batch(const spec::Job& job);
// A loader of those batches, from the first one on.
std::unique_ptr<loader::Loader> prediction_loader(const training::Trained& trained,
                                                  const loader::Collection& collection, run::LoaderState from,
                                                  int64_t batches);

// The runs of an ensemble, "RUN" or "RUN@WEIGHTS". User error when one has other classes, or is shown images in another
// way than `first`.
std::vector<training::Trained> load_ensemble(const std::vector<std::string>& runs, const training::Trained& first,
                                             at::Device device);

// `--columns LIST`: what is known of the images besides; null where nothing is asked. `say` gets a note where images
// have no row, or where the network would use columns and has none. User error where the network uses none, or others.
std::unique_ptr<const sources::ImageColumns> columns_for(const base::Arguments& arguments,
                                                         const training::Trained& trained,
                                                         const loader::Collection& collection,
                                                         const std::function<void(const std::string&)>& say);

// The network at work. One batch after the other; what it needs for all of them is set up once.
class BatchPredictor {
 public:
  // Both outlive it, and what `options` point to.
  BatchPredictor(const training::Trained& trained, const loader::Collection& collection, const PredictOptions& options);

  // One prediction per row of the batch, which `from` gave.
  std::vector<Prediction> predict(const loader::Batch& batch, const loader::Loader& from);

 private:
  // Of each row, with everything that is asked of it; null where the image could not be read: a task has nothing to
  // tell of a size and fields that are not there.
  std::vector<base::Json> records(const loader::Batch& batch, const model::NamedTensors& fields) const;
  std::vector<std::string> annotations_of(const loader::Batch& batch) const;  // with the columns
  void explain(const loader::Batch& batch, const model::NamedTensors& fields, const std::vector<base::Json>& records);

  const training::Trained& trained_;
  const loader::Collection& collection_;
  PredictOptions options_;
  c10::AutoGradMode no_gradients_{false};
  training::Inference inference_;
  std::vector<std::unique_ptr<training::Inference>> ensemble_;  // the others
  std::vector<double> temperatures_;                            // of those
};

// One prediction per image, in order; an image that cannot be read has its reason instead.
std::vector<Prediction> predict_images(const training::Trained& trained, const std::vector<std::string>& images,
                                       const PredictOptions& options);

// Over the ranks of `group`, each with whole batches; every rank gets all predictions, rank 0 tells them.
std::vector<Prediction> predict_collection(const training::Trained& trained, const loader::Collection& collection,
                                           const PredictOptions& options, comm::Group& group);

// {"images": [{"path", members of the record} or {"path", "error"}], "failed": 0}
base::Json predict_json(const std::vector<Prediction>& predictions);

enum class TableFormat { csv, jsonl };
// By the name of the file. User error for another extension.
TableFormat table_format(const base::Path& file);

// CSV (RFC 4180): file, the task's columns, error. `top` as PredictOptions had it; 0: all answers, a column each. No
// cell is a formula to a spreadsheet: names of files that begin like one get "./" in front, other words an apostrophe.
// `members`: of the records, each a further column.
std::string predict_csv(const std::vector<Prediction>& predictions, const task::Task& task, int64_t top,
                        const std::vector<std::string>& members = {});

// One line for a terminal: path, then what is predicted.
std::string predict_line(const Prediction& prediction, const training::Trained& trained);

}  // namespace lockstep::verbs::predict
