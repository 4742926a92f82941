// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/bad_samples.h"

#include <set>

#include "lockstep/base/text.h"
#include "lockstep/loader/data_lines.h"
#include "lockstep/step/evaluate.h"

namespace lockstep::training {

using base::Json;
using base::text;

namespace {

// Each path once; collective.
void tell(TrainingContext& context, std::set<std::string>& told, std::vector<loader::BadSample> bad, const char* event,
          const char* word) {
  std::erase_if(bad, [&](const loader::BadSample& sample) { return told.contains(sample.path); });
  for (const auto& sample : step::over_ranks(bad, context.group)) {
    if (!told.insert(sample.path).second || !context.ledger) continue;
    Json fields = Json::object();
    fields["path"] = sample.path;
    fields["reason"] = sample.reason;
    fields["step"] = context.state.step;
    context.ledger->note(event, fields);
    const bool repeats = sample.reason.starts_with(sample.path + ": ");
    const std::string reason = repeats ? sample.reason.substr(sample.path.size() + 2) : sample.reason;
    context.ledger->say(text(word, loader::on_one_line(sample.path), ": ", reason));
  }
}

}  // namespace

void report_bad_samples(TrainingContext& context, const loader::Loader* loader) {
  if (!loader) return;
  if (context.job.data.on_bad_sample != spec::OnBadSample::stop)
    tell(context, context.state.bad_files, loader->bad_samples(), "bad_sample", "skipped ");
  if (context.task->classes() == task::Classes::of_objects)
    tell(context, context.told_left_out, loader->left_out(), "left_out", "left out of ");
}

}  // namespace lockstep::training
