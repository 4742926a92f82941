// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/identity.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::run {

using base::text;

constexpr const char* kValidation = "data (names, labels, sizes of the validation samples)";

base::Json identity(const spec::Job& job, const std::string& train_sha256, const std::string& validate_sha256) {
  const base::Json document = spec::to_json(job);
  base::Json model = document.at("model");
  model.erase("weights");  // the checkpoint has newer ones
  const base::Json& training = document.at("training");
  base::Json result = base::Json::object();
  result["data (names, labels, sizes of the training samples)"] = train_sha256;
  if (!validate_sha256.empty()) result[kValidation] = validate_sha256;
  result["data.image_size"] = to_json(job.data.image_size);
  result["data.order"] = name_of(job.data.order);
  result["data.balance"] = job.data.balance;
  if (job.data.order == spec::SampleOrder::windows) {
    for (const char* key : {"extent", "window"}) result[text("data.", key)] = document.at("data").at(key);
  }
  for (const auto& member : model.members()) result[text("model.", member.key)] = member.value;
  for (const char* key : {"seed", "global_batch", "precision", "phases", "virtual_ranks", "threads_per_slice"}) {
    if (const auto* value = training.find(key)) result[text("training.", key)] = *value;
  }
  result["training.optimizer.name"] = name_of(job.training.optimizer.name);
  result["training.ema_decay"] = job.training.ema_decay;
  return result;
}

spec::SampleOrder order_of(const base::Json& saved_identity) {
  const std::string saved = saved_identity.string_or("data.order", "full");
  return saved == name_of(spec::SampleOrder::windows) ? spec::SampleOrder::windows : spec::SampleOrder::full;
}

namespace {

// Of data: an earlier version did not look into the files, whose contents stand behind a "/".
bool is_shorter_form(const base::Json& saved, const base::Json& now) {
  if (!saved.is_string() || !now.is_string() || saved.as_string().empty()) return false;
  return now.as_string().starts_with(saved.as_string() + "/");
}

}  // namespace

std::string difference(const base::Json& saved, const base::Json& now) {
  spec::Job before_the_key;
  before_the_key.data.order = order_of(base::Json::object());
  const base::Json plain = identity(before_the_key, "", "");
  for (const auto& member : now.members()) {
    const base::Json* before = saved.find(member.key);
    const base::Json* expected = before ? before : plain.find(member.key);
    if (!before && member.key == kValidation) continue;
    if (expected && (*expected == member.value || is_shorter_form(*expected, member.value))) continue;
    return text(member.key, " was ", before ? before->dump(-1) : "absent", ", now ", member.value.dump(-1));
  }
  return "";
}

void check_identity(const base::Json& saved, const base::Json& now, const std::string& folder) {
  const std::string found = difference(saved, now);
  if (found.empty()) return;
  throw base::Error(base::Blame::user, text("the checkpoint in ", folder, " is of another job: ", found),
                    "go on with the same job, or start over with --run OTHER_FOLDER");
}

}  // namespace lockstep::run
