// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/terms.h"

#include <initializer_list>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::results {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

void add_keys(Json& keys, const Json& document, const char* section, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const Json* value = document.at(section).find(name)) keys[text(section, ".", name)] = *value;
  }
}

}  // namespace

std::string picture_name(const std::string& path, const std::string& root) {
  std::string_view below = path;
  if (!root.empty() && below.starts_with(root)) below.remove_prefix(root.size());
  base::Path name;
  for (const auto& part : base::Path(below)) {
    const std::string word = part.string();
    if (word != ".." && word != "." && word != "/" && !word.empty()) name /= word;
  }
  return name.string() + ".jpg";
}

std::string thumbnail_name(const std::string& sha256) {
  return text(sha256.substr(0, 2), "/", sha256.substr(2, 14), ".jpg");
}

std::string Terms::model() const {
  return text(name, "@", base::sha256_hex(text(weights_sha256, keys.dump(-1))).substr(0, 16));
}

Terms terms_of(const spec::Job& job, const base::Path& weights, std::vector<std::string> classes, int64_t top) {
  const Json document = spec::to_json(job);
  Terms terms{job.name, base::sha256_of_file(weights), Json::object(), std::move(classes)};
  Json& keys = terms.keys;
  keys["task"] = document.at("task");
  for (const auto& member : document.at("model").members()) {
    if (member.key != "weights") keys[text("model.", member.key)] = member.value;
  }
  add_keys(keys, document, "data", {"image_size", "center_crop", "mean", "std"});
  add_keys(keys, document, "training", {"precision"});
  add_keys(keys, document, "evaluation", {"views"});
  if (const Json* own = document.find(document.at("task").as_string()); own && own->is_object()) {
    for (const auto& member : own->members())
      keys[text(document.at("task").as_string(), ".", member.key)] = member.value;
  }
  // By its content: the same path may have another table tomorrow.
  if (job.task == spec::Task::instances && !job.instances.context.empty())
    keys["instances.context"] = "sha256:" + base::sha256_of_file(job.instances.context);
  keys["--top"] = top;
  return terms;
}

std::string difference(const Terms& before, const Terms& now) {
  for (const auto& member : now.keys.members()) {
    const Json* was = before.keys.find(member.key);
    if (was && *was == member.value) continue;
    return text(member.key, " was ", was ? was->dump(-1) : "absent", ", now ", member.value.dump(-1));
  }
  for (const auto& member : before.keys.members()) {
    if (!now.keys.contains(member.key)) return text(member.key, " was ", member.value.dump(-1), ", now absent");
  }
  if (before.weights_sha256 != now.weights_sha256) {
    return text("the weights were those of sha256 ", before.weights_sha256.substr(0, 12), ", now ",
                now.weights_sha256.substr(0, 12));
  }
  return before.name == now.name ? "" : text("the job was called ", before.name, ", now ", now.name);
}

std::string fix_for_other_records() {
  return "keep them and choose another --to FILE, or give them up with --again";
}

void write_terms(const ResultPaths& paths, const Terms& terms) {
  Json document = Json::object();
  document["model"] = terms.model();
  document["name"] = terms.name;
  document["weights_sha256"] = terms.weights_sha256;
  document["keys"] = terms.keys;
  document["classes"] = Json::array_of(terms.classes);
  base::write_json(paths.terms(), document);
}

void check_terms(const ResultPaths& paths, const Terms& now) {
  if (!base::is_there(paths.terms())) return;
  const Json document = base::read_json(paths.terms(), {.max_bytes = size_t{64} << 20U});
  const Terms before{
      document.at("name").as_string(), document.at("weights_sha256").as_string(), document.at("keys"), {}};
  const std::string found = difference(before, now);
  if (found.empty()) return;
  throw Error(Blame::user, text(paths.to.string(), " was begun with another model: ", found), fix_for_other_records());
}

}  // namespace lockstep::results
