// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/bad_samples.h"

#include "lockstep/base/text.h"
#include "lockstep/loader/data_lines.h"
#include "lockstep/step/evaluate.h"

namespace lockstep::training {

using base::Json;
using base::text;

void report_bad_samples(TrainingContext& context, const loader::Loader* loader) {
  if (!loader || context.job.data.on_bad_sample == spec::OnBadSample::stop) return;
  auto& told = context.state.bad_files;
  auto bad = loader->bad_samples();
  std::erase_if(bad, [&](const loader::BadSample& sample) { return told.contains(sample.path); });
  for (const auto& sample : step::over_ranks(bad, context.group)) {
    if (!told.insert(sample.path).second || !context.ledger) continue;
    Json fields = Json::object();
    fields["path"] = sample.path;
    fields["reason"] = sample.reason;
    fields["step"] = context.state.step;
    context.ledger->note("bad_sample", fields);
    const bool repeats = sample.reason.starts_with(sample.path + ": ");
    const std::string reason = repeats ? sample.reason.substr(sample.path.size() + 2) : sample.reason;
    context.ledger->say(text("skipped ", loader::on_one_line(sample.path), ": ", reason));
  }
}

}  // namespace lockstep::training
