// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/stage_record.h"

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::workflow {
namespace {

using base::Json;

constexpr int64_t kVersion = 1;

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> all;
  for (const auto& item : list.items()) all.push_back(item.as_string());
  return all;
}

DigestsByPath digests_of(const Json& object) {
  DigestsByPath all;
  for (const auto& member : object.members()) all[member.key] = member.value.as_string();
  return all;
}

Json digests_json(const DigestsByPath& digests) {
  Json all = Json::object();
  for (const auto& [path, digest] : digests) all[path] = digest;
  return all;
}

// None where there is no such file; one of a later version is an error: who reads it wrong runs stages again.
std::optional<Json> read_state(const base::Path& path) {
  if (!base::is_there(path)) return std::nullopt;
  Json document = base::read_json(path, {.max_bytes = size_t{64} << 20});
  if (document.int_or("v", 0) != kVersion) {
    throw base::Error(base::Blame::user, base::text(path.string(), ": written by another version of lockstep"),
                      "use that version, or remove the workflow's state folder to run everything again");
  }
  return document;
}

}  // namespace

std::string Basis::key() const {
  return base::sha256_hex(to_json(*this).dump(-1));
}

Json to_json(const Basis& basis) {
  Json all = Json::object();
  all["words"] = Json::array_of(basis.words);
  all["outputs"] = Json::array_of(basis.outputs);
  all["inputs"] = digests_json(basis.inputs);
  all["files"] = digests_json(basis.files);
  return all;
}

Basis basis_from(const Json& document) {
  return {texts_of(document.at("words")), texts_of(document.at("outputs")), digests_of(document.at("inputs")),
          digests_of(document.at("files"))};
}

std::optional<Record> read_record(const StatePaths& paths, const std::string& stage) {
  const auto document = read_state(paths.record(stage));
  if (!document) return std::nullopt;
  Record record;
  record.basis = basis_from(document->at("basis"));
  record.outputs = digests_of(document->at("outputs"));
  if (const Json* changed = document->find("changed")) record.changed = texts_of(*changed);
  record.began = document->at("began").as_double();
  record.ended = document->at("ended").as_double();
  record.seconds = document->at("seconds").as_double();
  record.attempts = document->at("attempts").as_int();
  record.host = document->at("host").as_string();
  record.version = document->at("version").as_string();
  record.job = document->at("job").as_string();
  return record;
}

void write_record(const StatePaths& paths, const std::string& stage, const Record& record) {
  Json document = Json::object();
  document["v"] = kVersion;
  document["stage"] = stage;
  document["key"] = record.basis.key();
  document["basis"] = to_json(record.basis);
  document["outputs"] = digests_json(record.outputs);
  document["changed"] = Json::array_of(record.changed);
  document["began"] = record.began;
  document["ended"] = record.ended;
  document["seconds"] = record.seconds;
  document["attempts"] = record.attempts;
  document["host"] = record.host;
  document["version"] = record.version;
  document["job"] = record.job;
  base::write_json(paths.record(stage), document);
}

std::optional<Attempt> read_attempt(const StatePaths& paths, const std::string& stage) {
  const auto document = read_state(paths.attempt(stage));
  if (!document) return std::nullopt;
  Attempt attempt;
  attempt.key = document->at("key").as_string();
  attempt.token = document->at("token").as_string();
  attempt.host = document->at("host").as_string();
  attempt.began = document->at("began").as_double();
  attempt.started = document->at("started").as_double();
  attempt.seconds = document->at("seconds").as_double();
  attempt.number = document->at("number").as_int();
  attempt.half_made = texts_of(document->at("half_made"));
  attempt.trouble = document->at("trouble").as_string();
  return attempt;
}

void write_attempt(const StatePaths& paths, const std::string& stage, const Attempt& attempt) {
  Json document = Json::object();
  document["v"] = kVersion;
  document["stage"] = stage;
  document["key"] = attempt.key;
  document["token"] = attempt.token;
  document["host"] = attempt.host;
  document["began"] = attempt.began;
  document["started"] = attempt.started;
  document["seconds"] = attempt.seconds;
  document["number"] = attempt.number;
  document["half_made"] = Json::array_of(attempt.half_made);
  document["trouble"] = attempt.trouble;
  base::write_json(paths.attempt(stage), document);
}

}  // namespace lockstep::workflow
