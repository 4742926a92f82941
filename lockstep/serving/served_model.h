// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/loader/batch.h"
#include "lockstep/serving/infer_message.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::serving {

// What the network gave for the rows of a batch: [rows, width] each.
struct OutputRows {
  std::string name;
  int64_t width = 0;
  std::vector<float> values;

  bool operator==(const OutputRows&) const = default;
};

// From a batch to the outputs from which predictions are made. Called by as many threads at once as the batcher has
// runners.
using Pass = std::function<std::vector<OutputRows>(const loader::Batch&)>;

// One row of a batch, ready for the network.
struct EncodedRow {
  std::vector<std::vector<std::byte>> fields;  // as the task declares them
  std::string annotation;
};

struct RowToRun {
  const EncodedRow* row = nullptr;
  int64_t top = 5;  // answers in its record
};

struct RowAnswer {
  base::Json record;                        // as the task tells it
  std::vector<std::vector<float>> outputs;  // by output
};

struct ModelOptions {
  std::string name;
  std::string version;  // what tells this one from those before and after it
  std::string which;    // for people: "best, step 1200, top-1 92.93 %"
  std::string network;  // "resnet18"
  spec::Job job = {};
  std::shared_ptr<const task::Task> task = nullptr;
  std::vector<std::string> classes = {};
};

// A trained network that answers requests. From any thread, run() as far as the pass may be.
class ServedModel {
 public:
  // Runs one blank row through the network: what it gives is then known, and the first client need not wait for it.
  ServedModel(ModelOptions options, Pass pass);

  const std::string& name() const { return options_.name; }
  const std::string& version() const { return options_.version; }
  const std::string& which() const { return options_.which; }
  const task::Task& task() const { return *options_.task; }
  const std::vector<std::string>& classes() const { return options_.classes; }

  // Images as numbers are taken only where a prediction needs nothing else of an image: not its size, say.
  bool takes_numbers() const;
  base::Json metadata() const;     // of the protocol
  base::Json description() const;  // for the page

  // User error when the file is no image, is damaged, or promises more pixels than a server should decode.
  EncodedRow encode_image(std::string_view file) const;
  // [channels, height, width] as the network takes them: normalised.
  EncodedRow encode_numbers(std::span<const float> pixels) const;
  std::vector<int64_t> image_shape() const;  // [channels, height, width]

  // `rows` all made by the same of the two above.
  std::vector<RowAnswer> run(const std::vector<RowToRun>& rows, bool are_numbers) const;

  // The names of the outputs, as in RowAnswer, and "record": the record as JSON.
  std::vector<InferTensor> output_tensors(const std::vector<RowAnswer>& rows, const InferRequest& request) const;

 private:
  class HeldEncoder;
  loader::Batch make_batch(const std::vector<RowToRun>& rows, bool are_numbers) const;
  std::vector<std::byte*> blank_fields(EncodedRow& row) const;

  ModelOptions options_;
  std::vector<task::Field> fields_;
  Pass pass_;
  std::vector<OutputRows> outputs_;  // of the blank row
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<task::Encoder>> encoders_;  // not in use
};

constexpr int64_t kMaxServedPixels = int64_t{1}
                                     << 26;  // of an image: a bomb ends here, a photograph of 64 Mpx does not

}  // namespace lockstep::serving
