// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/caption.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::objective {
namespace {

using model::NamedTensors;

class Caption final : public Objective {
 public:
  explicit Caption(double coverage) : coverage_(coverage) {}

  std::vector<std::string> outputs() const override { return {"words", "log_probabilities", "attention", "given"}; }

  at::Tensor loss(const NamedTensors& outputs, const NamedTensors& fields, const BatchPosition&) const override {
    const at::Tensor& logits = outputs.at("word_logits");  // [rows, words, vocabulary]
    const int64_t rows = logits.size(0), length = logits.size(1);
    const at::Tensor counts = words_that_count(fields);  // [rows, words]
    const at::Tensor each = at::cross_entropy_loss(logits.to(at::kFloat).view({rows * length, logits.size(2)}),
                                                   fields.at("tokens").flatten(), {}, at::Reduction::None)
                                .view({rows, length});
    const at::Tensor words = (each * counts).sum(1) / num_words(fields);
    if (coverage_ == 0) return words.sum();
    const at::Tensor looked = (outputs.at("attention") * counts.unsqueeze(2)).sum(1);  // [rows, places]
    const at::Tensor has_words = counts.select(1, 0);
    return (words + (1 - looked).square().mean(1) * has_words * coverage_).sum();
  }
  std::vector<std::string> figures() const override { return {"word_accuracy"}; }
  std::string figure_text(const std::string& /*name*/, double value) const override {
    return base::text("words ", base::percent(value));
  }
  std::vector<at::Tensor> sums(const NamedTensors& outputs, const NamedTensors& fields) const override {
    const at::Tensor right = outputs.at("word_logits").detach().argmax(2).eq(fields.at("tokens")).to(at::kFloat);
    return {((right * words_that_count(fields)).sum(1) / num_words(fields)).sum()};
  }
  HostRows scored(const NamedTensors& outputs) const override {
    HostRows rows;
    for (const auto& [name, tensor] : outputs) rows.push_back({name, host_rows(tensor.flatten(1))});
    return rows;
  }

 private:
  static at::Tensor words_that_count(const NamedTensors& fields) {
    const at::Tensor& tokens = fields.at("tokens");
    return at::arange(tokens.size(1), tokens.options()).lt(fields.at("length").unsqueeze(1)).to(at::kFloat);
  }
  static at::Tensor num_words(const NamedTensors& fields) {  // [rows]; 1 where there is none
    return fields.at("length").to(at::kFloat).clamp_min(1);
  }

  double coverage_;
};

}  // namespace

std::shared_ptr<const Objective> make_caption(const spec::Job& job) {
  return std::make_shared<Caption>(job.caption.coverage);
}

}  // namespace lockstep::objective
