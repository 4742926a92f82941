// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/regress.h"

#include <ATen/TensorOperators.h>

namespace lockstep::objective {
namespace {

using model::NamedTensors;

class Regress final : public Objective {
 public:
  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& fields, const BatchPosition&) const override {
    return errors(outputs, fields).square().sum();
  }
  std::vector<std::string> figures() const override { return {"absolute_error"}; }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& fields) const override {
    return {errors(outputs, fields).detach().abs().sum()};
  }
  HostRows scored(const NamedTensors& outputs) const override { return {{"value", host_rows(outputs.at("output"))}}; }

 private:
  // float [rows]; 0 where a row has no part.
  static at::Tensor errors(const NamedTensors& outputs, const NamedTensors& fields) {
    return (outputs.at("output").to(at::kFloat).select(1, 0) - fields.at("value")) * fields.at("valid");
  }
};

}  // namespace

std::shared_ptr<const Objective> make_regress() {
  return std::make_shared<Regress>();
}

}  // namespace lockstep::objective
