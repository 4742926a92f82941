// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/nowcast.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "lockstep/task/radar/forecast_score.h"

namespace lockstep::objective {
namespace {

using model::NamedTensors;

class Nowcast final : public Objective {
 public:
  explicit Nowcast(const spec::Nowcast& how) : kind_(how.loss), pixel_loss_(how) {}

  std::vector<std::string> outputs() const override { return {"forecast"}; }

  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& fields, const BatchPosition&) const override {
    const at::Tensor& seen = fields.at("targets");  // [rows, outputs, 1, H, W]
    const at::Tensor measured = seen.ge(0).to(at::kFloat);
    const at::Tensor off = (outputs.at("forecast").to(at::kFloat) - seen) * measured;
    return (of_pixels(off, seen).flatten(1).sum(1) / pixels(measured)).sum();
  }
  std::vector<std::string> figures() const override { return {"mse"}; }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& fields) const override {
    const at::Tensor& seen = fields.at("targets");
    const at::Tensor measured = seen.ge(0).to(at::kFloat);
    const at::Tensor off = (outputs.at("forecast").detach().to(at::kFloat) - seen) * measured;
    return {(off.square().flatten(1).sum(1) / pixels(measured)).sum()};
  }
  HostRows scored(const NamedTensors& outputs) const override {
    return {{"forecast", host_rows(outputs.at("forecast").flatten(1))}};
  }

 private:
  // Of each row; 1 where there are none, whose sums are 0.
  static at::Tensor pixels(const at::Tensor& measured) { return measured.flatten(1).sum(1).clamp_min(1); }

  at::Tensor of_pixels(const at::Tensor& off, const at::Tensor& seen) const {
    switch (kind_) {
      case spec::ForecastLoss::mse:
        return off.square();
      case spec::ForecastLoss::mae:
        return off.abs();
      case spec::ForecastLoss::log_cosh: {
        const at::Tensor size = off.abs();
        return size + size.mul(-2).exp().add(1).log() - std::log(2.0);
      }
      case spec::ForecastLoss::weighted:
        break;
    }
    at::Tensor weight = seen.ge(pixel_loss_.steps()[0].from).to(at::kFloat) * pixel_loss_.steps()[0].more + 1;
    for (size_t i = 1; i < pixel_loss_.steps().size(); ++i) {
      weight = weight + seen.ge(pixel_loss_.steps()[i].from).to(at::kFloat) * pixel_loss_.steps()[i].more;
    }
    return weight * (off.square() + off.abs());
  }

  spec::ForecastLoss kind_;
  task::PixelLoss pixel_loss_;
};

}  // namespace

std::shared_ptr<const Objective> make_nowcast(const spec::Nowcast& how) {
  return std::make_shared<Nowcast>(how);
}

}  // namespace lockstep::objective
