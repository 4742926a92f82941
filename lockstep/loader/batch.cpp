// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/batch.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/image/render.h"
#include "lockstep/task/task.h"

namespace lockstep::loader {

const task::FieldValues& Batch::field(const std::string& name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& values) { return values.field.name == name; });
  base::ensure(found != fields.end(), "a batch has the field that is asked for");
  return *found;
}

Batch draw_batch(const spec::Job& job, int64_t first, int64_t rows) {
  const auto task = task::make_task(job);
  const auto encoder = task->encoder();
  Batch batch;
  batch.normalisation = image::normalisation_of(job.data);
  for (const auto& field : task->fields()) {
    batch.fields.push_back({field, std::vector<std::byte>(static_cast<size_t>(rows * field.bytes()))});
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t id = first + row;
    std::vector<std::byte*> out;
    for (auto& values : batch.fields) out.push_back(values.row(row));
    const auto label = static_cast<int32_t>(id % std::max<int64_t>(1, job.model.classes));
    encoder->draw(label, base::Random(base::derive_seed(1, "synthetic"), 0, static_cast<uint64_t>(id)), out);
    batch.sample_ids.push_back(id);
  }
  batch.was_read.assign(static_cast<size_t>(rows), 1);
  batch.global_size = rows;
  return batch;
}

}  // namespace lockstep::loader
