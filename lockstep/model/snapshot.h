// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/model/network.h"
#include "lockstep/model/weights.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/spec/job.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::model {

// Copies of tensors in main memory, from which a thread writes a checkpoint while training changes the originals. The
// memory (pinned, for tensors of a GPU) is kept from one save to the next.
class HostCopy {
 public:
  // Tensors as one safetensors file of a checkpoint. The copy stays as it is until part() is called with that name
  // again, or this object goes.
  run::CheckpointPart part(const std::string& name, const std::vector<Named>& tensors,
                           const weights::TensorMetadata& metadata = {});

 private:
  std::map<std::string, std::vector<at::Tensor>> kept_;
};

// Atomic; the bytes depend on the tensors and the metadata only. Returns the SHA-256 of the file.
std::string write_tensors(const base::Path& path, const std::vector<Named>& tensors,
                          const weights::TensorMetadata& metadata);

// Every tensor of a checkpoint's "weights", "optimizer" or "ema", copied; whole, however it was saved.
std::vector<Named> read_tensors(const base::Path& checkpoint, const std::string& file);

// Copies those tensors into those of the same name. User error naming the first that is missing or differs.
void restore_tensors(const base::Path& checkpoint, const std::string& file, const std::vector<Named>& into);

// Weights to begin with or to evaluate: a file (safetensors, .pth), or a checkpoint, as its folder (then the moving
// average where there is one, which training was evaluated by) or the "weights" or "ema" file in it; those may lie in
// partitions, in several files. User error when they are of another network, or no checksum of the checkpoint shows
// them whole.
LoadReport load_weights_from(Network& network, const base::Path& path);

// The time as text, for unique names that sort by time.
std::string name_of_now();

// SHA-256 over names, types, shapes and values, in the order of the names, and over `more`.
std::string tensors_sha256(std::vector<Named> tensors, const std::string& more);

// Parameters and buffers.
std::vector<Named> all_tensors(const Network& network);

}  // namespace lockstep::model
