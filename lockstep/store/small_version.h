// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/run/part_file.h"

namespace lockstep::store {

// For tests: files of a version whose weights are that text.
inline std::vector<run::CheckpointPart> small_parts(const std::string& weights) {
  const auto part = [](const char* name, const std::string& content) {
    return run::CheckpointPart{name, static_cast<int64_t>(content.size()), [content](const run::Sink& sink) {
                                 sink(std::as_bytes(std::span(content.data(), content.size())));
                               }};
  };
  return {part("job.json", "{}"), part("weights.safetensors", weights)};
}

}  // namespace lockstep::store
