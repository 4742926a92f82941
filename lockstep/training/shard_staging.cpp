// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/shard_staging.h"

#include <memory>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/stage.h"

namespace lockstep::training {

using base::Json;
using base::text;

void ShardStaging::start() {
  const auto& data = context_.job.data;
  if (data.stage.empty()) return;
  loader::Collections& collections = context_.collections;
  if (!collections.train.shards) {
    throw base::Error(base::Blame::user, text("data.stage copies shards; ", data.train, " has none"),
                      "lockstep prep makes shards of it; or leave data.stage out");
  }
  std::vector<loader::Collection*> all{&collections.train};
  if (collections.validate && collections.validate->shards) all.push_back(&*collections.validate);
  for (loader::Collection* collection : all) {
    const loader::StagePlan plan = loader::plan_stage(*collection, data.stage);
    if (context_.ledger) {
      Json fields = Json::object();
      fields["folder"] = plan.folder.string();
      fields["bytes"] = plan.bytes;
      fields["bytes_there"] = plan.bytes_there;
      fields["promised_seconds"] = plan.seconds();
      fields["fits"] = plan.fits();
      context_.ledger->note("stage", fields);
      context_.ledger->say(plan.to_text());
    }
    if (plan.fits()) collection->staging = std::make_shared<loader::Staging>(*collection, plan);
  }
}

void ShardStaging::tell_when_done() {
  const auto& staging = context_.collections.train.staging;
  if (told_ || !context_.ledger || !staging || !staging->is_done()) return;
  told_ = true;
  const loader::Staging::Progress progress = staging->progress();
  Json fields = Json::object();
  fields["step"] = context_.state.step;
  fields["shards"] = progress.shards;
  fields["bytes"] = progress.bytes;
  fields["trouble"] = progress.trouble;
  context_.ledger->note("staged", fields);
  context_.ledger->say(progress.trouble.empty()
                           ? text("all ", progress.shards, " shards are copied to this node and in use")
                           : text("the shards are read from their source: ", progress.trouble));
}

}  // namespace lockstep::training
