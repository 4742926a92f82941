// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/batch_statistics.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

namespace lockstep::step {

BatchStatistics::BatchStatistics(const model::Network& network, size_t from) {
  for (size_t i = from; i < network.blocks().size(); ++i) {
    for (const auto& buffer : network.blocks()[i]->buffers) {
      if (buffer.tensor.is_floating_point()) buffers_.push_back(buffer.tensor);
    }
  }
}

at::Tensor BatchStatistics::flat() const {
  std::vector<at::Tensor> rows;
  for (const auto& buffer : buffers_) rows.push_back(buffer.flatten());
  return at::cat(rows);
}

void BatchStatistics::write(const at::Tensor& flat) {
  int64_t offset = 0;
  for (auto& buffer : buffers_) {
    buffer.copy_(flat.narrow(0, offset, buffer.numel()).view(buffer.sizes()));
    offset += buffer.numel();
  }
}

void BatchStatistics::keep() {
  if (!buffers_.empty()) kept_ = flat();
}

void BatchStatistics::restore() {
  if (!buffers_.empty()) write(kept_);
}

// A micro-batch with one value a channel has no variance: its statistics are not finite.
void BatchStatistics::keep_finite() {
  if (buffers_.empty()) return;
  const at::Tensor now = flat();
  const at::Tensor finite = at::isfinite(now);
  if (!finite.all().item<bool>()) write(at::where(finite, now, kept_));
}

at::Tensor BatchStatistics::all_finite(at::Device device) const {
  if (buffers_.empty()) return at::ones({}, at::TensorOptions(device).dtype(at::kBool));
  return at::isfinite(flat()).all();
}

void BatchStatistics::merge(comm::Group& group, int64_t samples, int64_t global_size) {
  if (buffers_.empty()) return;
  if (group.size() == 1) return keep_finite();
  at::Tensor now = flat();
  now = at::where(at::isfinite(now), now, kept_);
  now.mul_(static_cast<double>(samples) / static_cast<double>(global_size));
  group.all_reduce_sum(now);
  write(now);
}

}  // namespace lockstep::step
