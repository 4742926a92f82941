// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/flat_block.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::step {
namespace {

int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

at::Tensor shaped(const at::Tensor& elements, const Slot& slot) {
  return slot.sizes.size() > 1 ? elements.unsqueeze(0) : elements;
}

}  // namespace

std::vector<FlatBlock> flat_blocks(const model::Network& network, size_t from, int64_t ranks) {
  std::vector<FlatBlock> all;
  for (size_t i = from; i < network.blocks().size(); ++i) {
    const auto& parameters = network.blocks()[i]->parameters;
    if (parameters.empty()) continue;
    FlatBlock flat;
    flat.block = i;
    int64_t end = 0;
    for (size_t k = 0; k < parameters.size(); ++k) {
      const at::Tensor& tensor = parameters[k].tensor;
      base::ensure(tensor.is_non_overlapping_and_dense(), base::text(parameters[k].name, " has no gaps"));
      flat.slots.push_back({.name = parameters[k].name,
                            .index = k,
                            .sizes = tensor.sizes().vec(),
                            .strides = tensor.strides().vec(),
                            .begin = round_up(end, kAlignment),
                            .numel = tensor.numel()});
      end = flat.slots.back().begin + tensor.numel();
    }
    flat.row = round_up(end, ranks * kAlignment);
    flat.part = flat.row / ranks;
    all.push_back(std::move(flat));
  }
  return all;
}

Cut cut_of(const FlatBlock& flat, const Slot& slot, int64_t rank) {
  const int64_t part = rank * flat.part;
  const int64_t first = std::max(part, slot.begin);
  const int64_t last = std::min(part + flat.part, slot.begin + slot.numel);
  if (first >= last) return {};
  return {first - slot.begin, last - first, first - part};
}

bool lies_as(const at::Tensor& tensor, const Slot& slot) {
  if (tensor.sizes().vec() != slot.sizes) return false;
  for (size_t dim = 0; dim < slot.sizes.size(); ++dim) {
    // The stride of a dim of size 1 means nothing.
    if (slot.sizes[dim] != 1 && tensor.stride(static_cast<int64_t>(dim)) != slot.strides[dim]) return false;
  }
  return true;
}

at::Tensor partition_of_parameter(const at::Tensor& tensor, const Slot& slot, const Cut& cut) {
  base::ensure(tensor.is_non_overlapping_and_dense(), "a tensor that is read in memory order has no gaps");
  const at::Tensor row = tensor.as_strided({slot.numel}, {1}, tensor.storage_offset());
  return shaped(row.narrow(0, cut.first, cut.count), slot);
}

at::Tensor partition_of_part(const at::Tensor& part, const Slot& slot, const Cut& cut) {
  return shaped(part.narrow(0, cut.at, cut.count), slot);
}

at::Tensor in_row(const at::Tensor& row, const Slot& slot) {
  return row.as_strided(slot.sizes, slot.strides, row.storage_offset() + slot.begin);
}

}  // namespace lockstep::step
