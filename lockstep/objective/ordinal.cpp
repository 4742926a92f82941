// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/ordinal.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

namespace lockstep::objective {
namespace {

using model::NamedTensors;

// Of each border between neighbouring classes: the logarithms of the probabilities that the class lies above it, and
// below. float [rows, classes - 1].
struct Borders {
  at::Tensor above, below;
};

// log of the sum of the probabilities where `in` [borders, classes] holds, in the parts that a simulated device knows.
at::Tensor log_sum(const at::Tensor& log, const at::Tensor& in) {
  const at::Tensor parts = at::where(in, log.unsqueeze(1), -std::numeric_limits<float>::infinity());
  const at::Tensor most = at::amax(parts.detach(), {2}, /*keepdim=*/true);  // [rows, borders, 1]
  return (parts - most).exp().sum(2).log() + most.squeeze(2);
}

Borders borders_of(const at::Tensor& output) {
  const at::Tensor log = at::log_softmax(output.to(at::kFloat), 1);  // [rows, classes]
  const at::Tensor classes = at::arange(output.size(1), output.options().dtype(at::kLong)).unsqueeze(0);
  const at::Tensor border = at::arange(output.size(1) - 1, classes.options()).unsqueeze(1);  // above class 0, 1, ...
  return {log_sum(log, classes.gt(border)), log_sum(log, classes.le(border))};
}

at::Tensor above_border(const at::Tensor& labels, int64_t borders) {  // [rows, borders]
  return labels.unsqueeze(1).gt(at::arange(borders, labels.options()).unsqueeze(0));
}

class Ordinal final : public Objective {
 public:
  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& fields, const BatchPosition&) const override {
    const at::Tensor& labels = fields.at("label");
    const Borders borders = borders_of(outputs.at("output"));
    const at::Tensor is_above = above_border(labels, borders.above.size(1));
    const at::Tensor each = at::where(is_above, borders.above, borders.below).sum(1).neg();  // [rows]
    return at::where(labels.ge(0), each, at::zeros_like(each)).sum();
  }
  // Classes between the answer and the label; the answer is the median of the probabilities.
  std::vector<std::string> figures() const override { return {"absolute_error"}; }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& fields) const override {
    const at::Tensor& labels = fields.at("label");
    const at::Tensor answers = borders_of(outputs.at("output").detach()).above.ge(std::log(0.5)).sum(1);
    const at::Tensor errors = (answers - labels).abs();
    return {at::where(labels.ge(0), errors, at::zeros_like(errors)).sum()};
  }
  HostRows scored(const NamedTensors& outputs) const override { return {{"logits", host_rows(outputs.at("output"))}}; }
  HostRows predicted(const NamedTensors& outputs) const override {
    return {{"probabilities", at::softmax(host_rows(outputs.at("output")), 1).contiguous()}};
  }
};

}  // namespace

std::shared_ptr<const Objective> make_ordinal() {
  return std::make_shared<Ordinal>();
}

}  // namespace lockstep::objective
