// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/batch_rules.h"

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/run/schedule.h"
#include "lockstep/spec/rank_rules.h"

namespace lockstep::run {
namespace {

using base::text;

std::string batch_norm_line(const spec::Training& training, int64_t ranks) {
  if (training.batch_norm == spec::BatchNorm::sync && ranks > 1) {
    const int64_t micro = training.micro_batch * ranks;
    const int64_t rows = micro > 0 ? std::min(micro, training.global_batch) : training.global_batch;
    return text("batch norm: statistics of ", rows, " samples, over ", ranks, " ranks (sync)");
  }
  if (training.batch_norm == spec::BatchNorm::ghost) {
    std::vector<std::string> smaller;
    for (const int64_t size : spec::smaller_slices(training, ranks)) smaller.push_back(text(size));
    return text(
        "batch norm: statistics of ", training.ghost_batch, " samples (ghost)",
        smaller.empty() ? "" : text("; what is left of a rank's share makes slices of ", base::join(smaller, ", ")));
  }
  return "";
}

}  // namespace

std::vector<std::string> batch_rule_lines(const spec::Training& training, int64_t ranks) {
  std::vector<std::string> lines;
  for (const std::string& line : {rate_rule_text(training), batch_norm_line(training, ranks)}) {
    if (!line.empty()) lines.push_back(line);
  }
  if (training.reduce_precision == spec::ReducePrecision::bf16 && ranks > 1) {
    lines.push_back(text("gradients: added up in bf16, off by at most ", ranks, " / 256 of their absolute sum"));
  }
  return lines;
}

}  // namespace lockstep::run
