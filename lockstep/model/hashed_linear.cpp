// SPDX-License-Identifier: Apache-2.0
// Sentences by a linear model of their n-grams (Joulin et al. 2016, "Bag of tricks for efficient text classification",
// arXiv 1607.01759): the mean of a row of numbers for each hashed n-gram, and a linear layer.
#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include "lockstep/model/architecture.h"
#include "lockstep/task/ngrams.h"

namespace lockstep::model {
namespace {

constexpr int64_t kNgramWidth = 16;

class NgramMean final : public PlainBlock {
 public:
  NgramMean(const Request& request, int64_t width)
      : PlainBlock("stem"),
        table_({*this, request.maker, "ngrams."}, "weight", {request.text.buckets + 1, width},
               Fill::uniform(1 / static_cast<double>(width))) {}

  // int64 [batch, slots] -> [batch, width]
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override {
    const at::Tensor rows = at::embedding(table_(), input);
    const at::Tensor there = input.ne(task::kNoNgram).to(rows.scalar_type());
    return (rows * there.unsqueeze(2)).sum(1) / there.sum(1, true).clamp_min(1);
  }

 private:
  Parameter table_;
};

}  // namespace

Blocks hashed_linear_blocks(const Request& request) {
  const int64_t width = request.model.width > 0 ? request.model.width : kNgramWidth;
  Blocks blocks;
  blocks.push_back(std::make_unique<NgramMean>(request, width));
  blocks.push_back(std::make_unique<Head>(request, width, HeadOptions{"head.", request.model.dropout}));
  return blocks;
}

}  // namespace lockstep::model
