// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/agreement.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"
#include "lockstep/version.h"

namespace lockstep::training {
namespace {

using base::Json;
using base::text;

// {"training": {"seed": 1}} as {"training.seed": 1}: people know a key by this name.
void flatten(const Json& object, const std::string& prefix, Json& into) {
  for (const auto& member : object.members()) {
    const std::string key = text(prefix, member.key);
    if (member.value.is_object()) {
      flatten(member.value, text(key, "."), into);
    } else {
      into[key] = member.value;
    }
  }
}

spec::Job without_own_affairs(spec::Job job) {
  const spec::Job plain;
  job.data.train = job.data.validate = job.data.test = "";  // the fingerprints say what lies there
  job.data.samples = plain.data.samples;
  job.data.threads = plain.data.threads;
  job.data.memory = plain.data.memory;
  job.data.stage = plain.data.stage;
  job.model.weights = plain.model.weights;
  job.training.threads = plain.training.threads;  // the least counts
  return job;
}

std::string told(const loader::Collection& collection, const std::string& fingerprint) {
  return text(collection.samples.size(), " samples, SHA-256 ", fingerprint);
}

at::Tensor compute_digest(const Json& terms) {
  base::Sha256 hash;
  hash.update(terms.dump(-1));
  const auto digest = hash.digest();
  at::Tensor bytes = at::empty({static_cast<int64_t>(digest.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), digest.data(), digest.size());
  return bytes;
}

std::string remedy(const std::string& key, const std::string& host) {
  if (key.starts_with("data (")) return text("make the data on ", host, " the same as on the host of rank 0");
  if (key.starts_with("program")) return text("install the same program on ", host, " as on the host of rank 0");
  if (key.starts_with("weights"))
    return text("make the file of model.weights on ", host, " the same as that of rank 0");
  return text("start all ranks with the same job file and the same words: is the file on ", host, " an older copy?");
}

// The two sentences of the error, in the words of the rank that differs.
Json complaint(const Json& of_rank_0, const Json& mine, const std::string& host, int64_t rank) {
  const Json& terms = of_rank_0.at("terms");
  for (const auto& member : mine.members()) {
    const Json& expected = terms.at(member.key);
    if (expected == member.value) continue;
    Json words = Json::object();
    words["what"] =
        text("rank ", rank, " on ", host, " would not train what rank 0 on ", of_rank_0.at("host").as_string(),
             " trains: ", member.key, " is ", member.value.dump(-1), " there, ", expected.dump(-1), " on rank 0");
    words["fix"] = remedy(member.key, host);
    return words;
  }
  throw base::Error(base::Blame::bug, text("rank ", rank, " differs from rank 0 in no term"));
}

}  // namespace

std::string node_of(const TrainOptions& options) {
  return options.node.empty() ? site::node_name() : options.node;
}

Json terms_of(const spec::Job& job, const loader::Collections& collections, const loader::Fingerprints& fingerprints,
              const TrainOptions& options) {
  Json terms = Json::object();
  terms["program"] =
      text("lockstep ", LOCKSTEP_VERSION, ", commit ", base::build_commit(), ", libtorch ", TORCH_VERSION);
  terms["data (names, labels, sizes of the training samples)"] = told(collections.train, fingerprints.train);
  terms["data (names, labels, sizes of the validation samples)"] =
      collections.validate ? told(*collections.validate, fingerprints.validate) : "absent";
  flatten(spec::to_json(without_own_affairs(job)), "", terms);
  terms["--history"] = options.history;
  terms["--run"] = options.run.string();
  return terms;
}

void check_terms(const Json& mine, const std::string& host, comm::Group& group) {
  if (group.size() == 1) return;
  const auto digests = group.all_gather(compute_digest(mine));
  const auto first =
      std::find_if(digests.begin(), digests.end(), [&](const at::Tensor& digest) { return !digest.equal(digests[0]); });
  if (first == digests.end()) return;
  const int64_t rank = first - digests.begin();
  Json said = Json::object();
  said["host"] = host;
  said["terms"] = mine;
  const Json of_rank_0 = base::parse_json(comm::broadcast_text(group, said.dump(-1)), "the terms of rank 0");
  const std::string own = group.rank() == rank ? complaint(of_rank_0, mine, host, rank).dump(-1) : "";
  const Json words = base::parse_json(comm::broadcast_text(group, own, rank), "the words of a rank");
  const auto others =
      std::count_if(first, digests.end(), [&](const auto& digest) { return !digest.equal(digests[0]); });
  throw base::Error(
      base::Blame::user,
      text(words.at("what").as_string(), others > 1 ? text(" (", others, " ranks differ from rank 0)") : ""),
      words.at("fix").as_string());
}

bool answer_of_rank_0(bool mine, comm::Group& group) {
  at::Tensor answer = at::scalar_tensor(mine ? 1 : 0, at::kLong);
  group.broadcast(answer, 0);
  return answer.item<int64_t>() != 0;
}

}  // namespace lockstep::training
