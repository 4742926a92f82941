// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/sample_history.h"

#include <cmath>
#include <set>

#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/training/sync_check.h"

namespace lockstep::training {
namespace {

base::Path history_file(const base::Path& run, int64_t rank) {
  base::make_folders(run / "history");
  return run / "history" / base::text("rank-", rank, ".jsonl");
}

bool in_partitions(const step::Partitioning* partitioning) {
  return partitioning && partitioning->level() == 3;
}

int64_t checksum(const std::vector<model::Named>& tensors) {
  const at::Tensor each = fingerprints(tensors);
  return base::crc32c(std::span(static_cast<const std::byte*>(each.const_data_ptr()), each.nbytes()));
}

// What this rank has of the weights. A parameter that is cut has nothing of its own in the network between steps; one
// of a frozen block is whole on every rank.
std::vector<model::Named> held_weights(const model::Network& network, const step::Partitioning* partitioning) {
  if (!in_partitions(partitioning)) return model::all_tensors(network);
  std::vector<model::Named> held = partitioning->weight_partitions();
  std::set<std::string> cut;
  for (const auto& partition : held) cut.insert(partition.name);
  for (const auto& entry : model::all_tensors(network)) {
    if (!cut.contains(entry.name)) held.push_back(entry);
  }
  return held;
}

}  // namespace

SampleHistory::SampleHistory(const base::Path& run, int64_t rank, int64_t num_ranks)
    : num_ranks_(num_ranks), file_(history_file(run, rank)) {
  std::error_code error;
  if (std::filesystem::file_size(history_file(run, rank), error) > 0 && !error)
    file_.append("\n");  // ends a line that a kill has torn
}

void SampleHistory::begin(const std::string& session, int64_t step) {
  base::Json line = base::Json::object();
  line["session"] = session;
  line["begin"] = step;
  line["ranks"] = num_ranks_;
  file_.append(line.dump(-1) + "\n");
}

void SampleHistory::rewound(int64_t step, int64_t data_shift) {
  base::Json line = base::Json::object();
  line["rewind"] = step;
  line["data_shift"] = data_shift;
  file_.append(line.dump(-1) + "\n");
}

void SampleHistory::step(int64_t step, const loader::Batch& batch, double loss, const model::Network& network,
                         const step::Partitioning* partitioning) {
  base::Json line = base::Json::object();
  line["step"] = step;
  line["ranks"] = num_ranks_;
  line["epoch"] = batch.epoch;
  if (std::isfinite(loss)) line["loss"] = loss;
  line["samples"] = base::Json::array_of(batch.sample_ids);
  line["weights"] = checksum(held_weights(network, partitioning));
  if (in_partitions(partitioning))
    line["partition"] = base::Json::array_of(std::vector<int64_t>{partitioning->rank(), num_ranks_});
  file_.append(line.dump(-1) + "\n");
}

}  // namespace lockstep::training
