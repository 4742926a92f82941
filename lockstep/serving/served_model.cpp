// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/served_model.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/render.h"

namespace lockstep::serving {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

std::span<const std::byte> bytes_in(std::string_view file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

Json tensor_json(const std::string& name, const char* datatype, const std::vector<int64_t>& shape) {
  Json tensor = Json::object();
  tensor["name"] = name;
  tensor["datatype"] = datatype;
  tensor["shape"] = Json::array_of(shape);
  return tensor;
}

}  // namespace

// An encoder for the length of a scope: they keep memory, so one serves many images, but one thread at a time.
class ServedModel::HeldEncoder {
 public:
  explicit HeldEncoder(const ServedModel& model) : model_(model) {
    const std::lock_guard lock(model.mutex_);
    if (model.encoders_.empty()) {
      encoder_ = model.options_.task->encoder();
    } else {
      encoder_ = std::move(model.encoders_.back());
      model.encoders_.pop_back();
    }
  }
  ~HeldEncoder() {
    const std::lock_guard lock(model_.mutex_);
    model_.encoders_.push_back(std::move(encoder_));
  }
  HeldEncoder(const HeldEncoder&) = delete;
  HeldEncoder& operator=(const HeldEncoder&) = delete;
  task::Encoder* operator->() const { return encoder_.get(); }

 private:
  const ServedModel& model_;
  std::unique_ptr<task::Encoder> encoder_;
};

ServedModel::ServedModel(ModelOptions options, Pass pass)
    : options_(std::move(options)), fields_(options_.task->fields()), pass_(std::move(pass)) {
  EncodedRow row;
  HeldEncoder(*this)->blank(blank_fields(row));
  outputs_ = pass_(make_batch({{&row}}, false));
}

std::vector<std::byte*> ServedModel::blank_fields(EncodedRow& row) const {
  std::vector<std::byte*> out;
  out.reserve(fields_.size());
  row.fields.reserve(fields_.size());
  for (const auto& field : fields_) out.push_back(row.fields.emplace_back(static_cast<size_t>(field.bytes())).data());
  return out;
}

EncodedRow ServedModel::encode_image(std::string_view file) const {
  const auto bytes = bytes_in(file);
  const image::ImageInfo info = image::read_image_info(bytes);
  if (info.width * info.height > kMaxServedPixels) {
    throw Error(Blame::user, text("an image of ", info.width, " x ", info.height, " pixels; at most ",
                                  kMaxServedPixels >> 20, " Mpx are decoded here"));
  }
  EncodedRow row;
  const HeldEncoder encoder(*this);
  encoder->encode({0, bytes, {}}, std::nullopt, blank_fields(row));
  row.annotation = encoder->annotation();
  return row;
}

bool ServedModel::takes_numbers() const {
  const task::Classes classes = options_.task->classes();
  const bool has_image = std::any_of(fields_.begin(), fields_.end(), [](const auto& f) { return f.name == "image"; });
  return has_image && classes != task::Classes::of_objects && classes != task::Classes::of_words;
}

std::vector<int64_t> ServedModel::image_shape() const {
  return fields_.at(task::index_of(fields_, "image")).shape;
}

EncodedRow ServedModel::encode_numbers(std::span<const float> pixels) const {
  EncodedRow row;
  HeldEncoder(*this)->blank(blank_fields(row));
  const auto shape = image_shape();
  const auto channels = static_cast<size_t>(shape[0]);
  const auto area = static_cast<size_t>(shape[1] * shape[2]);
  base::ensure(pixels.size() == channels * area, "an image of the network's size");
  auto& field = row.fields[task::index_of(fields_, "image")];
  field.resize(pixels.size() * sizeof(float));
  auto* out = reinterpret_cast<float*>(field.data());
  for (size_t i = 0; i < area; ++i) {
    for (size_t c = 0; c < channels; ++c) out[i * channels + c] = pixels[c * area + i];
  }
  return row;
}

loader::Batch ServedModel::make_batch(const std::vector<RowToRun>& rows, bool are_numbers) const {
  loader::Batch batch;
  batch.global_size = std::ssize(rows);
  batch.normalisation = image::normalisation_of(options_.job.data);
  batch.was_read.assign(rows.size(), 1);
  batch.sample_ids.resize(rows.size());
  std::iota(batch.sample_ids.begin(), batch.sample_ids.end(), int64_t{0});
  for (size_t i = 0; i < fields_.size(); ++i) {
    task::FieldValues values{fields_[i]};
    if (are_numbers && fields_[i].kind == task::Field::Kind::image) values.field.element = task::Element::fp32;
    for (const auto& [row, top] : rows)
      values.bytes.insert(values.bytes.end(), row->fields[i].begin(), row->fields[i].end());
    batch.fields.push_back(std::move(values));
  }
  for (const auto& [row, top] : rows) batch.annotations.push_back(row->annotation);
  return batch;
}

std::vector<RowAnswer> ServedModel::run(const std::vector<RowToRun>& rows, bool are_numbers) const {
  const loader::Batch batch = make_batch(rows, are_numbers);
  const std::vector<OutputRows> outputs = pass_(batch);
  task::Rows plain{batch.sample_ids, batch.fields, {}, batch.annotations};
  for (const auto& output : outputs) plain.outputs.push_back({output.name, output.width, output.values});
  std::vector<RowAnswer> answers(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    answers[i].record = options_.task->record(plain, static_cast<int64_t>(i), rows[i].top);
    for (const auto& output : plain.outputs) {
      const auto row = output.row(static_cast<int64_t>(i));
      answers[i].outputs.emplace_back(row.begin(), row.end());
    }
  }
  return answers;
}

Json ServedModel::metadata() const {
  Json all = Json::object();
  all["name"] = options_.name;
  all["versions"] = Json::array({Json(options_.version)});
  all["platform"] = "lockstep";
  std::vector<int64_t> shape{-1};
  if (takes_numbers()) {
    const auto image = image_shape();
    shape.insert(shape.end(), image.begin(), image.end());
  }
  all["inputs"] = Json::array({tensor_json("image", takes_numbers() ? "FP32" : "BYTES", shape)});
  Json outputs = Json::array();
  for (const auto& output : outputs_) outputs.push_back(tensor_json(output.name, "FP32", {-1, output.width}));
  outputs.push_back(tensor_json("record", "BYTES", {-1}));
  all["outputs"] = std::move(outputs);
  return all;
}

Json ServedModel::description() const {
  Json all = Json::object();
  all["name"] = options_.name;
  all["version"] = options_.version;
  all["which"] = options_.which;
  all["network"] = options_.network;
  all["task"] = spec::name_of(options_.job.task);
  all["classes"] = Json::array_of(options_.classes);
  return all;
}

std::vector<InferTensor> ServedModel::output_tensors(const std::vector<RowAnswer>& rows,
                                                     const InferRequest& request) const {
  std::vector<InferTensor> all;
  all.reserve(outputs_.size() + 1);
  const auto num_rows = std::ssize(rows);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    InferTensor tensor{outputs_[i].name, "FP32", {num_rows, outputs_[i].width}};
    for (const auto& row : rows) {
      tensor.numbers.insert(tensor.numbers.end(), row.outputs[i].begin(), row.outputs[i].end());
    }
    all.push_back(std::move(tensor));
  }
  InferTensor records{"record", "BYTES", {num_rows}};
  for (const auto& row : rows) records.words.push_back(row.record.dump(-1));
  all.push_back(std::move(records));
  if (request.outputs.empty()) return all;
  std::vector<InferTensor> wished;
  wished.reserve(request.outputs.size());
  for (const auto& wish : request.outputs) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const InferTensor& one) { return one.name == wish.name; });
    if (found == all.end()) throw Error(Blame::user, text("there is no output '", wish.name, "'"));
    wished.push_back(*found);
  }
  return wished;
}

}  // namespace lockstep::serving
