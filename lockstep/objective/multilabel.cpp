// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/multilabel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros_like.h>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::objective {
namespace {

class Multilabel final : public Objective {
 public:
  // The cross-entropy between "not given" (logit 0) and "given", class by class: exact for any logit, in the operators
  // that other losses have.
  at::Tensor loss(const model::NamedTensors& outputs, const model::NamedTensors& fields,
                  const BatchPosition&) const override {
    const at::Tensor logits = outputs.at("output").to(at::kFloat);  // [rows, classes]
    const at::Tensor& labels = fields.at("label");                  // [rows, classes]
    const at::Tensor shares = at::log_softmax(beside(at::zeros_like(logits), logits), 2);
    const at::Tensor each = (shares * beside(labels.neg().add(1), labels)).sum(2).neg();  // [rows, classes]
    return (each.mean(1) * fields.at("valid")).sum();
  }
  // The share of the classes that are told rightly at a probability of one half.
  std::vector<std::string> figures() const override { return {"right_labels"}; }
  std::string figure_text(const std::string&, double value) const override {
    return base::text("right labels ", base::percent(value));
  }
  std::vector<at::Tensor> sums(const model::NamedTensors& outputs, const model::NamedTensors& fields) const override {
    const at::Tensor right = outputs.at("output").detach().gt(0).eq(fields.at("label").gt(0));  // [rows, classes]
    return {(right.to(at::kFloat).mean(1) * fields.at("valid")).sum()};
  }
  HostRows scored(const model::NamedTensors& outputs) const override {
    return {{"logits", host_rows(outputs.at("output"))}};
  }
  HostRows predicted(const model::NamedTensors& outputs) const override {
    return {{"probabilities", at::sigmoid(host_rows(outputs.at("output"))).contiguous()}};
  }

 private:
  static at::Tensor beside(const at::Tensor& no,
                           const at::Tensor& yes) {  // [rows, classes] twice -> [rows, classes, 2]
    return at::cat({no.unsqueeze(2), yes.unsqueeze(2)}, 2);
  }
};

}  // namespace

std::shared_ptr<const Objective> make_multilabel() {
  return std::make_shared<Multilabel>();
}

}  // namespace lockstep::objective
