// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/frozen.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::model {
namespace {

constexpr size_t kMostShapes = 64;  // those that a server's batches have, and no endless number of others

// Of the largest output, or of 1: more than rounding ever comes to, less than any mistake.
double rounding_of(at::ScalarType type) {
  return type == at::kFloat ? 1e-3 : 5e-2;
}

// A power of two, so that batches of all sizes need few lists; at most two images of 224 pixels, or as many smaller
// ones: of more, the values of a layer leave the caches (MobileNetV2, one core: 11 ms an image of 2, 19 of 16).
int64_t rows_at_once(const at::Tensor& images, int64_t rows) {
  constexpr int64_t kPixels = int64_t{2} * 224 * 224;
  const int64_t pixels = std::max<int64_t>(1, images.numel() / images.size(0) / 3);
  int64_t part = 1;
  while (2 * part <= rows && 2 * part * pixels <= kPixels) part *= 2;
  return part;
}

bool agree(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor exact = b.to(at::kDouble);
  const double largest = std::max(1.0, exact.abs().max().item<double>());
  return (a.to(at::kDouble) - exact).abs().max().item<double>() <= rounding_of(a.scalar_type()) * largest;
}

}  // namespace

bool FrozenNetwork::takes(const Network& network) {
  const auto parameters = network.parameters();
  return network.interface().inputs == std::vector<std::string>{"image"} && at::globalContext().hasMKLDNN() &&
         at::globalContext().userEnabledMkldnn() &&
         std::all_of(parameters.begin(), parameters.end(), [](const auto& p) { return p.tensor.is_cpu(); });
}

FrozenNetwork::FrozenNetwork(const Network& network) : network_(network) {}

int64_t FrozenNetwork::lists() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(lists_.begin(), lists_.end(), [](const auto& row) { return row.second != nullptr; });
}

std::unique_ptr<CallList> FrozenNetwork::make_list(const Bundle& values) {
  Bundle expected;
  const auto recorded =
      record_calls([&] { expected = network_.run(values, Mode::evaluate, 0, network_.blocks().size()); });
  const auto calls = varying_calls(recorded, values);
  if (!calls) return nullptr;
  try {
    auto list = std::make_unique<CallList>(fuse_calls(*calls, values, expected, packed_), values, expected);
    const Bundle found = list->run(values);
    if (std::equal(found.begin(), found.end(), expected.begin(), expected.end(), agree)) return list;
  } catch (const c10::Error&) {  // this processor's oneDNN has no such convolution
  }
  return nullptr;
}

const CallList* FrozenNetwork::list_for(const Bundle& values) {
  const std::vector<int64_t> shape = values.front().sizes().vec();
  const auto known = [&]() -> std::optional<const CallList*> {
    const std::lock_guard lock(mutex_);
    const auto found = lists_.find(shape);
    if (found != lists_.end()) return found->second.get();
    return lists_.size() < kMostShapes ? std::nullopt : std::optional<const CallList*>(nullptr);
  };
  if (const auto list = known()) return *list;
  const std::lock_guard making(making_);
  if (const auto list = known()) return *list;  // another thread made it meanwhile
  auto made = make_list(values);
  const std::lock_guard lock(mutex_);
  return lists_.emplace(shape, std::move(made)).first->second.get();
}

Bundle FrozenNetwork::run_at_once(const Bundle& values) {
  const CallList* list = list_for(values);
  return list ? list->run(values) : network_.run(values, Mode::evaluate, 0, network_.blocks().size());
}

Bundle FrozenNetwork::run(const Bundle& values) {
  const int64_t rows = values.front().size(0);
  if (rows == 0) return network_.run(values, Mode::evaluate, 0, network_.blocks().size());
  std::vector<Bundle> parts;
  for (int64_t from = 0; from < rows;) {
    const int64_t part = rows_at_once(values.front(), rows - from);
    if (part == rows) return run_at_once(values);
    Bundle some;
    for (const auto& value : values) some.push_back(value.narrow(0, from, part));
    parts.push_back(run_at_once(some));
    from += part;
  }
  Bundle whole;
  for (size_t i = 0; i < parts.front().size(); ++i) {
    std::vector<at::Tensor> pieces;
    pieces.reserve(parts.size());
    for (const auto& part : parts) pieces.push_back(part[i]);
    whole.push_back(at::cat(pieces));
  }
  return whole;
}

}  // namespace lockstep::model
