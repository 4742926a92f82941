// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/base/random.h"
#include "lockstep/image/image.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/field.h"

namespace lockstep::task {

// A sample as it is stored: its label among the classes, the file of its image (or what stands in its place,
// Task::main_member), and the members that the task asked for (Task::members), in that order.
struct StoredSample {
  int32_t label = 0;
  std::span<const std::byte> image;
  std::vector<std::span<const std::byte>> members = {};
};

using FieldPointers = std::span<std::byte* const>;  // where each field of one sample goes, in the order of Task::fields

// Turns one stored sample into the fields of its row. Keeps memory from one sample to the next: one per thread.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // `random`: what a random view is drawn from; none: the view of evaluation. User error when the sample cannot be
  // read.
  virtual void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) = 0;
  virtual void draw(int32_t label, const base::Random& random, FieldPointers out) = 0;  // a synthetic sample
  virtual void blank(FieldPointers out) = 0;  // of a sample that could not be read: no part in loss, gradient or score
  virtual double decode_seconds() const = 0;  // of the last sample
  // From here on the fields are those of Task::fields_on(canvas).
  virtual void use_canvas(int64_t /*canvas*/) {}
  // What of the last sample could not be used while the rest of it was: an object each, with the reason.
  virtual std::vector<std::string> left_out() const { return {}; }
  // What score and record need of the last sample besides its fields: JSON, of any length. Empty: nothing.
  virtual std::string annotation() const { return ""; }
};

// What a network gave for the samples of a batch, in main memory: [rows, width] each.
struct OutputValues {
  std::string name;
  int64_t width = 0;
  std::span<const float> values;

  std::span<const float> row(int64_t i) const {
    return values.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
};

// Samples that were evaluated or predicted, as plain numbers.
struct Rows {
  std::span<const int64_t> sample_ids;
  const std::vector<FieldValues>& fields;         // as the loader gave them; the image's values may be left out
  std::vector<OutputValues> outputs;              // as the objective gives them
  std::span<const std::string> annotations = {};  // by row, Encoder::annotation(); empty where no encoder gave any

  int64_t size() const { return static_cast<int64_t>(sample_ids.size()); }
  const FieldValues& field(const std::string& name) const;  // REQUIRES: there is one
  const OutputValues& output(const std::string& name) const;
};

// The one figure by which a run is called better or worse than another.
struct Headline {
  std::string name;  // "top1"
  double value = 0;
  bool higher_is_better = true;
  std::string text;  // for people: "top-1 99.75 %"

  bool better_than(double other) const { return higher_is_better ? value > other : value < other; }
  bool operator==(const Headline&) const = default;
};
base::Json to_json(const Headline& headline);
Headline headline_from(const base::Json& value);

// What is kept of an evaluation when its samples are gone.
struct ScoreSummary {
  Headline headline;
  base::Json figures;  // Score::figures

  std::optional<double> figure(std::string_view name) const;  // none: there is no such figure, or it is not finite
  std::string text() const;                                   // "top-1 99.75 %, loss 0.0797"; no loss: without it
  base::Json to_json() const;
  static ScoreSummary from_json(const base::Json& value);
  bool operator==(const ScoreSummary&) const = default;
};

// How good the outputs were. Any order of adding and merging gives the same bits, hence any number of ranks does.
class Score {
 public:
  virtual ~Score() = default;
  ScoreSummary summary() const;
  virtual void add(const Rows& rows) = 0;  // samples that could not be read are left out
  // Everything it holds, for another rank's merge(); rank 0 merges the others in rank order.
  virtual std::string pack() const = 0;
  virtual void merge(std::string_view packed) = 0;

  virtual int64_t samples() const = 0;
  virtual bool is_sound() const;  // false: not one finite figure; such a network is the best of nothing
  virtual Headline headline() const = 0;
  virtual base::Json figures() const = 0;  // flat: what journal and TensorBoard keep of an evaluation
  virtual std::string line() const = 0;    // the same for people: "top-1 99.75 %  top-5 100.00 %  loss 0.0797"
  // All of it. "worst": samples that a person should look at, worst first, each with its id as "sample". "curves", if
  // it has any, are drawn by the report: [{"title", "x", "share", "series": [{"name", "points": [[x, y], ...]}]}].
  virtual base::Json to_json() const = 0;
  virtual std::string to_text() const;  // for a terminal
  std::vector<int64_t> worst() const;   // their ids
};

// Where the classes of a task stand: there are none, each sample is of one, each object in a sample is, or they are the
// words of its captions (vocabulary.h).
enum class Classes { none, of_samples, of_objects, of_words };

// What people and other programs need to know who have a task's network alone (a model card, an exported file).
struct NetworkWords {
  std::string gives;                                    // "a number for an image"
  std::string activation = "none";                      // makes answers of the outputs; or the page that says what does
  std::optional<double> threshold = std::nullopt;       // of sigmoid: from it on a class is said
  std::string normalised = "(RGB / 255 - mean) / std";  // how what it sees is made of what was measured
  std::string takes = {};                               // in the place of images: "sentences in UTF-8"
};

// What is learnt, as far as it needs no libtorch: the fields of a batch, how a stored sample becomes them, how outputs
// are scored and told. Its other half, the loss, is objective/objective.h. Everything else knows tasks through these
// two alone. Calls may come from any thread.
class Task {
 public:
  virtual ~Task() = default;

  virtual std::vector<Field> fields() const = 0;
  // Of a task whose training batches come in several sizes: how many; the fields of each, those of number 0 are
  // fields(), which hold any image; the smallest that holds an image of width x height whatever is drawn.
  virtual int64_t num_canvases() const { return 1; }
  virtual std::vector<Field> fields_on(int64_t /*canvas*/) const { return fields(); }
  virtual int64_t canvas_of(int64_t /*width*/, int64_t /*height*/) const { return 0; }
  // The member that stands in the place of the image where samples have none: "txt". Empty: they are images.
  virtual std::string main_member() const { return ""; }
  virtual std::vector<std::string> members() const { return {}; }  // of a sample, besides its image: "json"
  virtual std::unique_ptr<Encoder> encoder() const = 0;
  virtual Classes classes() const = 0;
  // Of classes of objects: how many of an image are learnt at most; 0: all.
  virtual int64_t object_slots() const { return 0; }
  // Of the data's classes those that a prediction may name.
  virtual std::vector<std::string> told_classes(const std::vector<std::string>& classes) const { return classes; }
  // Columns of an image (year, place) by which a prediction changes; in its annotation they stand as "columns".
  virtual std::vector<std::string> known_columns() const { return {}; }
  virtual int64_t num_outputs() const = 0;  // numbers that the network's head gives for a sample; 0: not known yet

  // The mistakes that are kept with their samples: `worst` of them at most.
  virtual std::unique_ptr<Score> score(int64_t worst) const = 0;

  // What the report draws and calls it: {"title": "Accuracy", "share": true, "higher_is_better": true, "training": key
  // of a step's figure, "validation": key of the headline, "also": {name: key of a further figure of an evaluation}}.
  virtual base::Json report_words() const = 0;

  virtual NetworkWords network_words() const = 0;

  // What is predicted for row `i`: members of its record, besides its path. `top`: how many answers at most.
  virtual base::Json record(const Rows& rows, int64_t i, int64_t top) const = 0;
  virtual std::string line(const base::Json& record) const = 0;  // the record for a terminal
  // The same as cells of a table: its columns, and a record's cells in them. `top` as the record was made with; 0: with
  // all answers, a column each.
  virtual std::vector<std::string> columns(int64_t top) const = 0;
  virtual std::vector<std::string> cells(const base::Json& record, int64_t top) const = 0;
  // The record on its image, of whatever size it is shown in: boxes, outlines, names. False: there is nothing to draw.
  virtual bool draw(const base::Json& /*record*/, image::Image& /*on*/) const { return false; }
  // The same in motion: an animated PNG. Empty: there is nothing that moves.
  virtual std::string animation(const base::Json& /*record*/) const { return ""; }
};

// The job's. `classes`: label -> name, as far as they are known.
std::unique_ptr<Task> make_task(const spec::Job& job, std::vector<std::string> classes = {});

}  // namespace lockstep::task
